#pragma once
// Line charts as SVG.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tts::bench {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascending
};

struct Chart {
  std::string title;
  std::string x_label{}, y_label{};
  std::vector<std::string> categories{};  // names of x = 0, 1, 2, …, a line is interrupted where one has no point; empty = x is a number
  bool log_x = false;                     // numbers only, all > 0
  std::optional<double> limit{};          // a dashed line across at this y
  std::vector<Series> series;             // none may be empty
};

// Distance between ticks, one of 1, 2, 5 times a power of ten, so that at most `most` fit into `range` > 0.
double tick_distance(double range, int most);

// One picture with the charts side by side, readable on light and dark pages. Charts without series are left out.
std::string to_svg(const std::string& title, std::span<const Chart> charts);

}  // namespace tts::bench
