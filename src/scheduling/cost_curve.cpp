#include "cost_curve.h"

#include <algorithm>
#include <bit>

namespace tts::scheduling {
namespace {

constexpr double kNewest = 0.05;     // weight of an observation once there are many
constexpr double kElsewhere = 0.5;    // share of a change that other sizes follow
constexpr double kOutlier = 4.0;     // a pause of the whole machine counts as at most so many times the average
constexpr double kGrowingShare = 0.25;
constexpr double kFullWeight = 50;   // observations after which a point weighs no more in the fit

}  // namespace

void CostCurve::observe(std::uint32_t size, double seconds) noexcept {
  if (size == 0 || !(seconds >= 0)) return;
  Point& here = points_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(size - 1)), points_.size() - 1)];
  const double expected = at(size);
  if (here.seen > 0) seconds = std::min(seconds, kOutlier * here.seconds);
  const double weight = std::max(kNewest, 1.0 / (here.seen + 1.0));
  here.size += weight * (size - here.size);
  here.seconds += weight * (seconds - here.seconds);
  ++here.seen;
  ++observations_;
  if (here.seen <= 1 / kNewest || expected <= 0) return;  // still being found out, or too quick to be measured: no change of the machine
  const double change = 1 + kNewest * kElsewhere * (std::clamp(seconds / expected, 0.0, kOutlier) - 1);
  for (Point& point : points_) {
    if (&point != &here) point.seconds *= change;
  }
}

double CostCurve::at(double size) const noexcept {
  const Point* below = nullptr;
  for (const Point& point : points_) {
    if (point.seen == 0) continue;
    if (point.size >= size) {
      if (below == nullptr) return point.seconds;  // smaller than anything seen: never less than what is known
      const double share = (size - below->size) / (point.size - below->size);
      return below->seconds + share * (point.seconds - below->seconds);
    }
    below = &point;
  }
  return below == nullptr ? 0 : below->seconds + (size - below->size) * std::clamp(slope(), 0.0, below->seconds / below->size);
}

double CostCurve::slope() const noexcept {
  double weights = 0, mean_size = 0, mean_seconds = 0;
  const Point* only = nullptr;
  for (const Point& point : points_) {
    const double weight = std::min(static_cast<double>(point.seen), kFullWeight);
    if (weight <= 0) continue;
    weights += weight;
    mean_size += weight * point.size;
    mean_seconds += weight * point.seconds;
    only = &point;
  }
  mean_size /= weights;
  mean_seconds /= weights;
  double along = 0, squares = 0;
  for (const Point& point : points_) {
    const double weight = std::min(static_cast<double>(point.seen), kFullWeight);
    along += weight * (point.size - mean_size) * (point.seconds - mean_seconds);
    squares += weight * (point.size - mean_size) * (point.size - mean_size);
  }
  return squares > 0 ? along / squares : kGrowingShare * only->seconds / only->size;
}

}  // namespace tts::scheduling
