#include "report.h"

#include <cmath>

#include <fmt/format.h>

#include "chart.h"

namespace tts::bench {
namespace {

using nlohmann::ordered_json;

// Four significant digits, so that a file can be read and compared.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 3);
  return unit >= 1 ? std::round(value) : std::round(value / unit) / std::round(1 / unit);
}

ordered_json to_json(const Distribution& d) {
  if (d.count == 0) return nullptr;
  return {{"count", d.count},      {"mean", rounded(d.mean)}, {"p50", rounded(d.p50)},
          {"p95", rounded(d.p95)}, {"p99", rounded(d.p99)},   {"max", rounded(d.max)}};
}

ordered_json to_json(const EngineShare& share) {
  return {{"steps_per_s", rounded(share.steps_per_second)},
          {"step_s", rounded(share.step_seconds)},
          {"rows_per_step", rounded(share.rows_per_step)},
          {"decode_s", rounded(share.decode_seconds)},
          {"streams_per_decode", rounded(share.streams_per_decode)},
          {"generate_share", rounded(share.generate_share)},
          {"decode_share", rounded(share.decode_share)}};
}

ordered_json to_json(const Level& level) {
  ordered_json out{{"name", level.name}, {"kind", level.clients > 0 ? "closed" : "open"}};
  if (level.clients > 0) {
    out["clients"] = level.clients;
  } else {
    out["load"] = level.load;
    out["requests_per_s"] = rounded(level.rate);
  }
  const auto problem = why_not_passed(level);
  out["passed"] = problem.empty();
  if (!problem.empty()) out["problem"] = problem;
  out["window_s"] = rounded(level.window);
  out["asked"] = level.asked;
  out["completed"] = level.completed;
  out["refused"] = level.refused;
  out["failed"] = level.failed;
  out["unfinished"] = level.unfinished;
  out["first_byte_s"] = to_json(level.first_byte);
  out["first_audio_s"] = to_json(level.first_audio);
  out["gap_s"] = to_json(level.gap);
  out["rtf"] = to_json(level.rtf);
  out["retry_after_s"] = to_json(level.retry_after);
  out["underruns"] = {{"count", level.underruns}, {"requests", level.dry}, {"seconds", rounded(level.underrun_seconds)}};
  out["audio_s_per_s"] = rounded(level.audio_rate);
  out["audio_s_per_request"] = rounded(level.audio_per_request);
  out["client_cores"] = rounded(level.client_cores);
  if (level.server_cores) out["server_cores"] = rounded(*level.server_cores);
  if (level.engine) out["engine"] = to_json(*level.engine);
  return out;
}

ordered_json to_json(const Capacity& capacity) {
  ordered_json out{{"streams", capacity.streams}, {"seconds", rounded(capacity.seconds)}};
  out["level"] = capacity.level ? to_json(*capacity.level) : ordered_json();
  out["probes"] = ordered_json::array();
  for (const auto& probe : capacity.probes) {
    ordered_json entry{{"streams", probe.streams}, {"seconds", rounded(probe.seconds)}, {"passed", probe.problem.empty()}};
    if (!probe.problem.empty()) entry["problem"] = probe.problem;
    out["probes"].push_back(std::move(entry));
  }
  return out;
}

std::string milliseconds(const Distribution& d) {
  return d.count == 0 ? "-" : fmt::format("{:.0f} / {:.0f} / {:.0f}", d.p50 * 1e3, d.p95 * 1e3, d.p99 * 1e3);
}

std::string cores(const Level& level) {
  return level.server_cores ? fmt::format("{:.2f} + {:.2f}", *level.server_cores, level.client_cores)
                            : fmt::format("? + {:.2f}", level.client_cores);
}

constexpr std::string_view kRow = "{:<12} {:>5}  {:>19}  {:>19}  {:>7}  {:>13}  {:>7}  {:>9}  {:>7}  {:>11}  {}\n";

// Levels as categories, with a gap between the closed and the open loops: they are two questions.
std::vector<const Level*> columns(const std::vector<Level>& levels) {
  std::vector<const Level*> columns;
  for (const auto& level : levels) {
    if (!columns.empty() && (columns.back()->clients == 0) != (level.clients == 0)) columns.push_back(nullptr);
    columns.push_back(&level);
  }
  return columns;
}

Series over_levels(const std::vector<const Level*>& columns, const char* name, Distribution Level::*which, double Distribution::*value,
                   double scale) {
  Series series{.name = name, .points = {}};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == nullptr) continue;
    const auto& distribution = columns[i]->*which;
    if (distribution.count > 0) series.points.emplace_back(static_cast<double>(i), distribution.*value * scale);
  }
  return series;
}

}  // namespace

ordered_json to_json(const Report& report) {
  ordered_json out{{"tool", "chattts-server bench"}, {"version", report.version},  {"commit", report.commit},
                   {"build", report.build},          {"date", report.date},        {"machine", to_json(report.machine)},
                   {"target", report.target},        {"model", report.model},      {"precision", report.precision},
                   {"settings", report.settings},    {"workload", report.workload}};
  out["levels"] = ordered_json::array();
  for (const auto& level : report.levels) out["levels"].push_back(to_json(level));
  if (report.capacity) out["capacity"] = to_json(*report.capacity);
  if (report.memory) out["memory_mib"] = {{"resident", rounded(report.memory->resident_mib)}, {"peak", rounded(report.memory->peak_mib)}};
  return out;
}

std::string heading(const Report& report) {
  const auto field = [](const ordered_json& json, const char* name) {
    return json.is_object() && json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : std::string();
  };
  auto text = fmt::format("chattts-server {} ({}, {}), {}\n", report.version, report.commit, report.build, report.date);
  text += "machine:  " + describe(report.machine) + "\n";
  text += fmt::format("server:   {}, model {}", report.target, field(report.model, "id"));
  if (!report.precision.empty()) text += ", " + report.precision;
  text += "\n";
  if (!report.settings.empty()) text += "settings: " + report.settings.dump() + "\n";
  text += "workload: " + report.workload.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  return text;
}

std::string table_header() {
  return fmt::format(fmt::runtime(kRow), "", "", "first byte, ms", "first sound, ms", "gap, ms", "RTF", "audio", "", "", "cores", "") +
         fmt::format(fmt::runtime(kRow), "level", "n", "p50 / p95 / p99", "p50 / p95 / p99", "p99", "p50 / p99", "s per s", "silences",
                     "refused", "server + us", "passed");
}

std::string table_row(const Level& level) {
  const auto problem = why_not_passed(level);
  const auto rtf = level.rtf.count == 0 ? std::string("-") : fmt::format("{:.3f} / {:.3f}", level.rtf.p50, level.rtf.p99);
  return fmt::format(fmt::runtime(kRow), level.name, level.completed, milliseconds(level.first_byte), milliseconds(level.first_audio),
                     level.gap.count == 0 ? "-" : fmt::format("{:.0f}", level.gap.p99 * 1e3), rtf, fmt::format("{:.2f}", level.audio_rate),
                     level.underruns, level.refused, cores(level), problem.empty() ? "yes" : "no: " + problem);
}

std::string plot(const Report& report) {
  const auto levels = columns(report.levels);
  Chart latency{.title = "First sound by load", .y_label = "ms", .series = {}};
  Chart rtf{.title = "Real-time factor of a stream by load", .limit = 1.0, .series = {}};
  Chart spread{.title = "Share of listeners by time to first sound", .x_label = "ms", .log_x = true, .series = {}};
  for (const auto* level : levels) latency.categories.push_back(level == nullptr ? "" : level->name);
  rtf.categories = latency.categories;
  const auto add = [](Chart& chart, Series series) {
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  };
  add(latency, over_levels(levels, "p50", &Level::first_audio, &Distribution::p50, 1e3));
  add(latency, over_levels(levels, "p95", &Level::first_audio, &Distribution::p95, 1e3));
  add(latency, over_levels(levels, "p99", &Level::first_audio, &Distribution::p99, 1e3));
  add(rtf, over_levels(levels, "p50", &Level::rtf, &Distribution::p50, 1));
  add(rtf, over_levels(levels, "p99", &Level::rtf, &Distribution::p99, 1));
  for (const auto& level : report.levels) {
    Series series{.name = level.name, .points = {}};
    const auto& values = level.first_audio_values;
    for (std::size_t i = 0; i < values.size(); ++i)
      series.points.emplace_back(values[i] * 1e3, static_cast<double>(i + 1) / static_cast<double>(values.size()));
    add(spread, std::move(series));
  }
  const std::vector<Chart> charts{std::move(latency), std::move(rtf), std::move(spread)};
  return to_svg(fmt::format("chattts-server {} on {}, {} cores", report.version, report.machine.processor, report.machine.cores), charts);
}

}  // namespace tts::bench
