#include "level.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tts::bench {

Level make_level(const LoadOptions& options, const LoadResult& result) {
  Level level;
  level.clients = options.clients;
  level.rate = options.rate;
  level.window = result.window;
  level.asked = result.asked;
  level.unfinished = result.unfinished;
  std::vector<double> first_byte, first_audio, gap, rtf, retry_after;
  double audio = 0;
  for (const auto& outcome : result.outcomes) {
    switch (outcome.fate) {
      case Fate::kDone:
        ++level.completed;
        first_byte.push_back(outcome.first_byte);
        first_audio.push_back(outcome.first_audio);
        rtf.push_back(outcome.rtf());
        gap.insert(gap.end(), outcome.gaps.begin(), outcome.gaps.end());
        audio += outcome.audio;
        break;
      case Fate::kRefused:
        ++level.refused;
        retry_after.push_back(outcome.retry_after);
        break;
      case Fate::kFailed:
        ++level.failed;
        if (level.error.empty()) level.error = outcome.error;
        break;
    }
  }
  level.first_byte = describe(std::move(first_byte));
  level.first_audio = describe(first_audio);
  std::sort(first_audio.begin(), first_audio.end());
  level.first_audio_values = std::move(first_audio);
  level.gap = describe(std::move(gap));
  level.rtf = describe(std::move(rtf));
  level.retry_after = describe(std::move(retry_after));
  level.underruns = result.total.underruns;
  level.dry = result.total.dry;
  level.underrun_seconds = result.total.underrun_seconds;
  if (result.window > 0) level.audio_rate = (result.at_end.audio - result.before.audio) / result.window;
  if (level.completed > 0) level.audio_per_request = audio / static_cast<double>(level.completed);
  level.client_cores = result.client_cores;
  return level;
}

std::string why_not_passed(const Level& level) {
  std::string why;
  const auto add = [&why](std::string reason) { why.append(why.empty() ? "" : ", ").append(reason); };
  if (level.asked == 0) add("nothing was asked");
  if (level.underruns > 0) add(fmt::format("{} silences of {:.2f} s together", level.underruns, level.underrun_seconds));
  if (level.refused > 0) add(fmt::format("{} refused", level.refused));
  if (level.failed > 0) add(fmt::format("{} failed ({})", level.failed, level.error));
  if (level.unfinished > 0) add(fmt::format("{} without an end", level.unfinished));
  return why;
}

}  // namespace tts::bench
