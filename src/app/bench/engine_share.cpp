#include "engine_share.h"

#include <algorithm>
#include <charconv>

namespace tts::bench {

double metric_value(std::string_view metrics, std::string_view name) {
  double sum = 0;
  while (!metrics.empty()) {
    const auto end = std::min(metrics.find('\n'), metrics.size());
    const auto line = metrics.substr(0, end);
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    if (!line.starts_with(name) || line.size() == name.size()) continue;
    if (const char next = line[name.size()]; next != ' ' && next != '{') continue;
    const auto number = line.substr(line.rfind(' ') + 1);
    double value = 0;
    std::from_chars(number.data(), number.data() + number.size(), value);
    sum += value;
  }
  return sum;
}

std::string metric_label(std::string_view metrics, std::string_view name, std::string_view label) {
  const auto start = "\n" + std::string(name) + "{", marker = std::string(label) + "=\"";
  const auto series = metrics.find(start);
  if (series == std::string_view::npos) return {};
  const auto line = metrics.substr(series + start.size(), metrics.find('\n', series + 1) - series - start.size());
  for (auto at = line.find(marker); at != std::string_view::npos; at = line.find(marker, at + 1)) {
    if (at > 0 && line[at - 1] != ',') continue;  // the end of a longer name
    const auto begin = at + marker.size();
    return std::string(line.substr(begin, line.find('"', begin) - begin));
  }
  return {};
}

EngineShare engine_share(std::string_view before, std::string_view after, double seconds) {
  const auto grown = [&](std::string_view name) { return metric_value(after, name) - metric_value(before, name); };
  const auto mean = [&](std::string_view sum, std::string_view count) { return grown(count) > 0 ? grown(sum) / grown(count) : 0; };
  return {.steps_per_second = grown("tts_step_seconds_count") / seconds,
          .step_seconds = mean("tts_step_seconds_sum", "tts_step_seconds_count"),
          .rows_per_step = mean("tts_batch_rows_sum", "tts_batch_rows_count"),
          .decode_seconds = mean("tts_decode_seconds_sum", "tts_decode_seconds_count"),
          .streams_per_decode = mean("tts_decode_streams_sum", "tts_decode_streams_count"),
          .generate_share = grown("tts_step_seconds_sum") / seconds,
          .decode_share = grown("tts_decode_seconds_sum") / seconds};
}

}  // namespace tts::bench
