#pragma once
// How long work of a given size takes, learned from what was seen.

#include <array>
#include <cstdint>

namespace tts::scheduling {

inline constexpr double kOutlier = 4.0;  // a pause of the whole machine counts as at most so many times the usual

// Sizes are kept apart by powers of two, each with moving averages of size and time; between them the curve is straight. So the shape
// survives hours at one size, and a step that costs the same for 1 row and for 16 (matrix tiles) shows as such. What slows one size
// (another process, a lower clock) mostly slows all, so the other sizes follow half of a change until they are seen again. And a size that
// was not seen since a smaller one costs at most as many of the smaller: or a machine that was busy once would never be trusted again
// with a size that it is not given for that very reason.
// Not thread-safe. Allocates nothing.
class CostCurve {
 public:
  void observe(std::uint32_t size, double seconds) noexcept;

  std::uint64_t observations() const noexcept { return observations_; }

  // Seconds; 0 = nothing observed yet. Beyond the largest size seen it goes on along the fitted line; with one size seen, a quarter of
  // its time is taken to grow with the size.
  double at(double size) const noexcept;

  // `size`, or the smaller size in portions of which it takes noticeably less time: what a step reads may outgrow the caches. Only by what
  // was seen itself, without the bound above.
  std::uint32_t cheapest_portion(std::uint32_t size) const noexcept;

 private:
  struct Point {
    double size = 0, seconds = 0;
    double bounded = 0;  // seconds, by what was seen of smaller sizes since
    std::uint32_t seen = 0;
    std::uint64_t last_seen = 0;  // number of the observation

    double per_unit() const noexcept { return seconds / size; }
  };

  static std::size_t index_of(std::uint32_t size) noexcept;
  void bound_the_old() noexcept;
  double slope() const noexcept;  // seconds per unit of size: least squares over the points

  std::array<Point, 20> points_;  // 1, 2, 3..4, 5..8 and so on; the last takes the rest
  std::uint64_t observations_ = 0;
};

}  // namespace tts::scheduling
