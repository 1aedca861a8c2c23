#include "cost_curve.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace tts::scheduling {
namespace {

constexpr double kNewest = 0.05;     // weight of an observation once there are many
constexpr double kElsewhere = 0.5;    // share of a change that other sizes follow
constexpr double kGrowingShare = 0.25;
constexpr double kFullWeight = 50;   // observations after which a point weighs no more in the fit

constexpr std::uint32_t kEnoughToCompare = 20;
constexpr double kNoticeablyCheaper = 0.9;

}  // namespace

std::size_t CostCurve::index_of(std::uint32_t size) noexcept {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(size - 1)), std::tuple_size_v<decltype(points_)> - 1);
}

void CostCurve::observe(std::uint32_t size, double seconds) noexcept {
  if (size == 0 || !(seconds >= 0)) return;
  Point& here = points_[index_of(size)];
  const double expected = at(size);
  if (here.seconds > 0) seconds = std::min(seconds, kOutlier * here.seconds);
  const double weight = std::max(kNewest, 1.0 / (here.seen + 1.0));
  here.size += weight * (size - here.size);
  here.seconds += weight * (seconds - here.seconds);
  ++here.seen;
  here.last_seen = ++observations_;
  const bool found_out = here.seen > 1 / kNewest && expected > 0;  // else it is no change of the machine, or too quick to be measured
  const double change = found_out ? 1 + kNewest * kElsewhere * (std::clamp(seconds / expected, 0.0, kOutlier) - 1) : 1;
  for (Point& point : points_) {
    if (&point != &here) point.seconds *= change;
  }
  bound_the_old();
}

void CostCurve::bound_the_old() noexcept {
  for (std::size_t i = 0; i < points_.size(); ++i) {
    Point& point = points_[i];
    point.bounded = point.seconds;
    for (std::size_t j = 0; j < i; ++j) {
      const Point& smaller = points_[j];
      if (smaller.last_seen > point.last_seen) point.bounded = std::min(point.bounded, smaller.seconds * point.size / smaller.size);
    }
  }
}

double CostCurve::at(double size) const noexcept {
  const Point* below = nullptr;
  for (const Point& point : points_) {
    if (point.seen == 0) continue;
    if (point.size >= size) {
      if (below == nullptr) return point.bounded;  // smaller than anything seen: never less than what is known
      const double share = (size - below->size) / (point.size - below->size);
      return below->bounded + share * (point.bounded - below->bounded);
    }
    below = &point;
  }
  return below == nullptr ? 0 : below->bounded + (size - below->size) * std::clamp(slope(), 0.0, below->bounded / below->size);
}

std::uint32_t CostCurve::cheapest_portion(std::uint32_t size) const noexcept {
  if (size == 0) return size;
  const std::size_t whole = index_of(size);
  if (points_[whole].seen < kEnoughToCompare) return size;
  std::size_t best = whole;
  for (std::size_t i = 0; i < whole; ++i) {
    if (points_[i].seen >= kEnoughToCompare && points_[i].per_unit() < points_[best].per_unit()) best = i;
  }
  return points_[best].per_unit() > kNoticeablyCheaper * points_[whole].per_unit() ? size : std::uint32_t{1} << best;
}

double CostCurve::slope() const noexcept {
  double weights = 0, mean_size = 0, mean_seconds = 0;
  const Point* last = nullptr;
  int sizes = 0;
  for (const Point& point : points_) {
    const double weight = std::min(static_cast<double>(point.seen), kFullWeight);
    if (weight <= 0) continue;
    weights += weight;
    mean_size += weight * point.size;
    mean_seconds += weight * point.bounded;
    last = &point;
    ++sizes;
  }
  if (sizes == 1) return kGrowingShare * last->bounded / last->size;
  mean_size /= weights;
  mean_seconds /= weights;
  double along = 0, squares = 0;
  for (const Point& point : points_) {
    const double weight = std::min(static_cast<double>(point.seen), kFullWeight);
    along += weight * (point.size - mean_size) * (point.bounded - mean_seconds);
    squares += weight * (point.size - mean_size) * (point.size - mean_size);
  }
  return along / squares;  // two sizes are never equal
}

}  // namespace tts::scheduling
