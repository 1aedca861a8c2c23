#pragma once
// ChatTTS's speaker strings (base16384 over LZMA2) and random speakers. Strings come from users: every length is bounded.
// parse_speaker_string() itself is declared in tts/model/model.h.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tts/base/result.h"
#include "tts/engine/utterance.h"

namespace tts::model {

// The inverse of parse_speaker_string(); values are rounded to half precision. Precondition: finite in half precision.
std::string format_speaker_string(std::span<const float> speaker);

// Codes of a reference recording ("spk_smp"): 1..max_frames frames, each code below 625.
Result<std::vector<engine::CodeFrame>> parse_reference_string(std::string_view utf8, std::size_t max_frames);
std::string format_reference_string(std::span<const engine::CodeFrame> frames);

// Per-dimension spread and centre of the speakers a model was trained on ("spk_stat"); finite.
struct SpeakerStatistics {
  std::vector<float> deviation, mean;
};
Result<SpeakerStatistics> parse_speaker_statistics(std::string_view utf8, std::uint32_t hidden_size);

// mean + noise * deviation, each operation rounded to half precision as the reference does. noise.size() == mean.size().
std::vector<float> speaker_from_noise(const SpeakerStatistics& statistics, std::span<const float> noise);

// The same with standard normal noise of our own generator: one seed is one voice.
std::vector<float> random_speaker(const SpeakerStatistics& statistics, std::uint64_t seed);

}  // namespace tts::model
