#include "session.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "audio_meter.h"
#include "bodies.h"
#include "capacity.h"

namespace tts::bench {
namespace {

using nlohmann::ordered_json;

constexpr double kRampPerClient = 0.1, kMostRamp = 10;  // s between the starts of two listeners, and all of them
constexpr double kOpenRamp = 2;                         // s of arrivals before the window
constexpr double kRequestsWindow = 600;                 // s at most, where the number of requests ends a level
constexpr double kTrialWindow = 300;                    // s that the first request may take
constexpr int kTrials = 10;                             // of the first request, when it is refused
constexpr double kQuickProbe = 10;                      // s of a step of the search for the capacity
constexpr auto kRest = std::chrono::seconds(1);         // between two levels, for requests that were cut to leave the server

ordered_json parse_object(const std::string& fields) {
  if (fields.empty()) return ordered_json::object();
  auto parsed = ordered_json::parse(fields, nullptr, false);
  if (!parsed.is_object()) throw std::runtime_error("--fields must be a JSON object, for instance {\"temperature\": 0.3}");
  return parsed;
}

ordered_json first_model(const std::string& document) {
  const auto parsed = ordered_json::parse(document, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("data") || parsed["data"].empty())
    throw std::runtime_error("the server's list of models cannot be read; is it a chattts-server?");
  return parsed["data"][0];
}

}  // namespace

Session::Session(const Server& server, Plan plan, ServerProbe probe, Screen& screen)
    : server_(server), plan_(std::move(plan)), probe_(std::move(probe)), screen_(screen) {
  if (!make_audio_meter(plan_.format, 1)) throw std::runtime_error("only pcm, wav and opus can be timed, not " + plan_.format);
  model_ = first_model(get(server_, "/v1/models"));
  const auto voices = get(server_, "/v1/voices");
  std::map<std::string, std::string> voice_of;  // by language
  const auto voice_for = [&](const std::string& language) {
    if (!plan_.voice.empty()) return plan_.voice;
    return language.empty() ? std::string() : choose_voice(voices, language).value_or("");
  };

  if (!plan_.texts.empty()) {
    texts_ = read_texts(plan_.texts);
  } else {
    for (const auto& language : plan_.languages) {
      if (plan_.voice.empty() && !choose_voice(voices, language)) continue;
      for (const auto length : plan_.lengths) {
        auto some = built_in_texts(language, length);
        std::move(some.begin(), some.end(), std::back_inserter(texts_));
      }
    }
    if (texts_.empty()) throw std::runtime_error("no voice of the server speaks any of the languages; choose others with --languages");
  }
  shuffle(texts_, plan_.seed);
  for (const auto& text : texts_) voices_.push_back(voice_for(text.language));

  common_ = parse_object(plan_.fields);
  common_["format"] = plan_.format;
  if (plan_.steps > 0) {
    common_["min_steps"] = plan_.steps;
    common_["max_steps"] = plan_.steps;
    common_["split"] = false;
  }
}

ordered_json Session::workload() const {
  ordered_json out{{"format", plan_.format}, {"texts", texts_.size()}, {"seed", plan_.seed}};
  if (!plan_.texts.empty()) {
    out["file"] = plan_.texts.filename().string();
  } else {
    out["languages"] = plan_.languages;
    out["characters"] = plan_.lengths;
  }
  if (plan_.steps > 0) out["steps"] = plan_.steps;
  if (!plan_.voice.empty()) out["voice"] = plan_.voice;
  if (!plan_.fields.empty()) out["fields"] = parse_object(plan_.fields);
  if (plan_.pace == Pace::kPlayback) out["pace"] = "playback";
  return out;
}

LoadOptions Session::closed_loop(std::size_t clients) const {
  LoadOptions options;
  options.format = plan_.format;
  options.clients = clients;
  options.pace = plan_.pace;
  options.ramp = std::min(kMostRamp, kRampPerClient * static_cast<double>(clients - 1));
  options.window = plan_.requests > 0 ? kRequestsWindow : plan_.seconds;
  options.requests = plan_.requests;
  return options;
}

Level Session::measure(std::string name, LoadOptions options) {
  Bodies bodies(texts_, voices_, common_, plan_.seed);
  double cpu = 0;
  std::string metrics_before, metrics_after;
  LoadHooks hooks;
  hooks.next_body = [&] { return bodies.next(); };
  hooks.progress = [&](const Tally& tally, double now) {
    const double left = options.ramp + options.window - now;
    const auto when = left <= 0              ? std::string("waiting for the last")
                      : options.requests > 0 ? fmt::format("{:.0f} s", now)
                                             : fmt::format("{:.0f} s left", left);
    screen_.progress(fmt::format("{}: {}, {} listening, {} done, {:.1f} s of audio a second, {} silences, {} refused, {} failed", name,
                                 when, tally.open(), tally.done, tally.audio / now, tally.underruns, tally.refused, tally.failed));
  };
  hooks.window_begins = [&] {
    if (probe_.cpu_seconds) cpu = probe_.cpu_seconds();
    if (probe_.metrics) metrics_before = probe_.metrics();
  };
  hooks.window_ends = [&] {
    if (probe_.cpu_seconds) cpu = probe_.cpu_seconds() - cpu;
    if (probe_.metrics) metrics_after = probe_.metrics();
  };
  const auto result = run_load(server_, options, hooks);
  auto level = make_level(options, result);
  level.name = std::move(name);
  if (probe_.cpu_seconds) level.server_cores = std::max(0.0, cpu) / result.window;  // two clocks: a hair below 0 when idle
  if (probe_.metrics) level.engine = engine_share(metrics_before, metrics_after, result.window);
  std::this_thread::sleep_for(kRest);
  return level;
}

// What is wrong with every request is said once, at once; and nothing that only the first request pays for gets into the figures.
void Session::try_one() {
  Bodies bodies(texts_, voices_, common_, plan_.seed);
  LoadOptions options;
  options.format = plan_.format;
  options.requests = 1;
  options.window = kTrialWindow;
  const LoadHooks hooks{.next_body = [&] { return bodies.next(); }, .progress = {}, .window_begins = {}, .window_ends = {}};
  for (int left = kTrials; left > 0; --left) {  // a busy server may refuse at first
    const auto result = run_load(server_, options, hooks);
    if (result.outcomes.empty()) throw std::runtime_error("the first request does not end");
    const auto& first = result.outcomes.front();
    if (first.fate == Fate::kDone) return;
    if (first.fate == Fate::kFailed || left == 1) throw std::runtime_error("the first request was not answered with audio: " + first.error);
    std::this_thread::sleep_for(kRest);
  }
}

std::vector<Level> Session::levels() {
  try_one();
  std::vector<Level> levels;
  double best_rate = 0, audio_per_request = 0;
  const auto keep = [&](Level level) {
    screen_.line(table_row(level));
    levels.push_back(std::move(level));
  };
  screen_.line(table_header());
  for (const auto clients : plan_.concurrency) {
    auto level = measure(fmt::format("closed {}", clients), closed_loop(clients));
    if (level.completed > 0 && level.audio_rate > best_rate) {
      best_rate = level.audio_rate;
      audio_per_request = level.audio_per_request;
    }
    keep(std::move(level));
  }
  for (const auto percent : plan_.load) {
    if (percent <= 0 || best_rate <= 0) continue;
    LoadOptions options;
    options.format = plan_.format;
    options.clients = 0;
    options.rate = percent / 100 * best_rate / audio_per_request;
    options.seed = plan_.seed + static_cast<std::uint64_t>(percent);
    options.ramp = kOpenRamp;
    options.window = plan_.requests > 0 ? kRequestsWindow : plan_.seconds;
    options.requests = plan_.requests;
    auto level = measure(fmt::format("open {:g} %", percent), options);
    level.load = percent / 100;
    keep(std::move(level));
  }
  return levels;
}

bool Session::probe_streams(std::size_t streams, double seconds, Capacity& capacity) {
  auto options = closed_loop(streams);
  options.requests = 0;
  options.window = std::max(seconds, 2 * plan_.most_wait);
  options.patience = std::chrono::milliseconds(std::llround(plan_.most_wait * 1000));
  options.finish = false;
  auto level = measure(fmt::format("{} streams", streams), options);
  auto problem = why_not_passed(level);
  screen_.line(fmt::format("{:>4} streams, {:.0f} s: {}\n", streams, options.window, problem.empty() ? "gap-free" : problem));
  capacity.probes.push_back({.streams = streams, .seconds = options.window, .problem = problem});
  if (!problem.empty()) return false;
  capacity.seconds = options.window;
  capacity.level = std::move(level);
  return true;
}

Capacity Session::capacity() {
  try_one();
  Capacity capacity;
  const auto quick = [&](std::size_t streams) { return probe_streams(streams, std::min(kQuickProbe, plan_.seconds), capacity); };
  const auto thorough = [&](std::size_t streams) { return probe_streams(streams, plan_.seconds, capacity); };
  capacity.streams = find_capacity(plan_.most_streams, quick, thorough);
  if (capacity.streams == 0) {
    capacity.level.reset();
    capacity.seconds = 0;
    return capacity;
  }
  screen_.line(table_header());
  screen_.line(table_row(*capacity.level));
  return capacity;
}

}  // namespace tts::bench
