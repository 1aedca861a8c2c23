#include "chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace tts::bench {
namespace {

constexpr double kChartWidth = 460, kHeight = 380;
constexpr double kLeft = 62, kRight = 18, kTop = 84, kBottom = 78;
constexpr double kPlotWidth = kChartWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr std::array<std::string_view, 8> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// Maps one axis' values to pixels and knows where its ticks are.
struct Axis {
  double low = 0, high = 1;
  bool log = false;
  std::vector<double> ticks;

  double share(double value) const {
    return log ? (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low)) : (value - low) / (high - low);
  }
};

Axis linear_axis(double most) {
  constexpr int kMostTicks = 7;
  Axis axis;
  axis.high = most > 0 ? most * 1.05 : 1;
  const double step = tick_distance(axis.high, kMostTicks);
  for (int i = 0; i * step <= axis.high; ++i) axis.ticks.push_back(i * step);
  return axis;
}

Axis log_axis(double least, double most) {
  Axis axis{.low = least / 1.1, .high = most * 1.1, .log = true, .ticks = {}};
  const bool wide = axis.high > 20 * axis.low;
  for (double decade = std::pow(10, std::floor(std::log10(axis.low))); decade <= axis.high; decade *= 10) {
    for (const double digit : {1.0, 1.5, 2.0, 3.0, 5.0, 7.0}) {
      if (wide && (digit == 1.5 || digit == 3 || digit == 7)) continue;
      if (const double tick = decade * digit; tick >= axis.low && tick <= axis.high) axis.ticks.push_back(tick);
    }
  }
  return axis;
}

Axis category_axis(std::size_t count) {
  Axis axis{.low = -0.3, .high = static_cast<double>(count) - 0.7, .log = false, .ticks = {}};
  for (std::size_t i = 0; i < count; ++i) axis.ticks.push_back(static_cast<double>(i));
  return axis;
}

Axis x_axis(const Chart& chart) {
  if (!chart.categories.empty()) return category_axis(chart.categories.size());
  double least = chart.series.front().points.front().first, most = least;
  for (const auto& series : chart.series) {
    least = std::min(least, series.points.front().first);
    most = std::max(most, series.points.back().first);
  }
  return chart.log_x ? log_axis(least, most) : linear_axis(most);
}

Axis y_axis(const Chart& chart) {
  double most = chart.limit.value_or(0);
  for (const auto& series : chart.series) {
    for (const auto& point : series.points) most = std::max(most, point.second);
  }
  return linear_axis(most);
}

std::string text(double x, double y, std::string_view anchor, std::string_view words, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more, escaped(words));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}

std::string draw(const Chart& chart) {
  const Axis x = x_axis(chart), y = y_axis(chart);
  const auto across = [&](double value) { return kLeft + x.share(value) * kPlotWidth; };
  const auto up = [&](double value) { return kTop + (1 - y.share(value)) * kPlotHeight; };
  constexpr std::string_view kGrid = "stroke=\"#ccc\" fill=\"none\"";
  std::string out = text(kLeft + kPlotWidth / 2, 44, "middle", chart.title, " font-weight=\"bold\"");

  for (const double tick : y.ticks) {
    out += line(kLeft, up(tick), kLeft + kPlotWidth, up(tick), kGrid);
    out += text(kLeft - 6, up(tick) + 4, "end", fmt::format("{:.6g}", tick));
  }
  for (std::size_t i = 0; i < x.ticks.size(); ++i) {
    const double at = across(x.ticks[i]);
    if (chart.categories.empty()) {
      out += line(at, kTop, at, kTop + kPlotHeight, kGrid);
      out += text(at, kTop + kPlotHeight + 16, "middle", fmt::format("{:.6g}", x.ticks[i]));
    } else {
      const auto turned = fmt::format(" transform=\"rotate(-30 {:.1f} {:.1f})\"", at, kTop + kPlotHeight + 14);
      out += text(at, kTop + kPlotHeight + 14, "end", chart.categories[i], turned);
    }
  }
  out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n", kLeft, kTop, kPlotWidth,
                     kPlotHeight);
  out += text(kLeft + kPlotWidth / 2, kTop + kPlotHeight + 34, "middle", chart.x_label);
  out += text(14, kTop + kPlotHeight / 2, "middle", chart.y_label,
              fmt::format(" transform=\"rotate(-90 14 {:.1f})\"", kTop + kPlotHeight / 2));
  if (chart.limit)
    out += line(kLeft, up(*chart.limit), kLeft + kPlotWidth, up(*chart.limit), "stroke=\"#c00\" stroke-dasharray=\"5 4\" fill=\"none\"");

  double legend = kLeft, legend_top = 54;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const auto& series = chart.series[i];
    const auto colour = kColours[i % kColours.size()];
    std::string path;
    double last = 0;
    for (const auto& [px, py] : series.points) {
      const bool joined = !path.empty() && (chart.categories.empty() || px - last <= 1);
      path += fmt::format("{}{:.1f} {:.1f}", joined ? "L" : "M", across(px), up(py));
      last = px;
    }
    out += fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"2\" fill=\"none\"/>\n", path, colour);
    if (!chart.categories.empty()) {
      for (const auto& [px, py] : series.points)
        out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", across(px), up(py), colour);
    }
    const double legend_width = 22 + 5.2 * static_cast<double>(series.name.size());
    if (legend > kLeft && legend + legend_width > kLeft + kPlotWidth) {
      legend = kLeft;
      legend_top += 13;
    }
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"9\" height=\"9\" fill=\"{}\"/>\n", legend, legend_top, colour);
    out += text(legend + 12, legend_top + 8.5, "start", series.name, " font-size=\"10\"");
    legend += legend_width;
  }
  return out;
}

}  // namespace

double tick_distance(double range, int most) {
  const double least = range / most, power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= least * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

std::string to_svg(const std::string& title, std::span<const Chart> charts) {
  std::string body;
  int shown = 0;
  for (const auto& chart : charts) {
    if (chart.series.empty()) continue;
    body += fmt::format("<g transform=\"translate({:.0f} 0)\">\n{}</g>\n", kChartWidth * shown++, draw(chart));
  }
  const double width = kChartWidth * std::max(1, shown);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{2}{3}</svg>\n",
      width, kHeight, text(width / 2, 20, "middle", title, " font-size=\"13\""), body);
}

}  // namespace tts::bench
