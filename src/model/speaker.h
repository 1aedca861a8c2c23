#pragma once
// ChatTTS's speaker strings (model spec, Speaker strings) and random speakers. Strings come from users: every length is bounded.
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

// Base16384: 14 bits a character, U+4E00 + value, then U+3D00 + n when the last 7-byte group holds only n bytes.
std::string encode_base16384(std::span<const std::uint8_t> bytes);
// kInvalidArgument for other characters, a wrong number of them or a wrong marker; kTooLarge beyond `max_bytes`.
Result<std::vector<std::uint8_t>> decode_base16384(std::string_view utf8, std::size_t max_bytes);

// Raw LZMA2 without compression: what any LZMA2 decoder accepts.
std::vector<std::uint8_t> store_lzma2(std::span<const std::uint8_t> bytes);
// Exactly `size` bytes must come out; memory is bounded by `size`, not by what the stream claims.
Result<std::vector<std::uint8_t>> decode_lzma2(std::span<const std::uint8_t> stream, std::size_t size);

// The inverse of parse_speaker_string; values are rounded to half precision. Precondition: they are finite in it.
std::string format_speaker_string(std::span<const float> speaker);

// Codes of a reference recording ("spk_smp"). Each code is below 625; 1..max_frames frames.
Result<std::vector<engine::CodeFrame>> parse_reference_string(std::string_view utf8, std::size_t max_frames);
std::string format_reference_string(std::span<const engine::CodeFrame> frames);

// Per-dimension spread and centre of the speakers a model was trained on ("spk_stat"), finite.
struct SpeakerStatistics {
  std::vector<float> deviation, mean;
};
Result<SpeakerStatistics> parse_speaker_statistics(std::string_view utf8, std::uint32_t hidden_size);

// A speaker drawn from the statistics, in half precision as the reference does: mean + round(noise * deviation).
std::vector<float> speaker_from_noise(const SpeakerStatistics& statistics, std::span<const float> noise);
// The same with normal noise of our own generator: one seed gives one voice on every machine.
std::vector<float> random_speaker(const SpeakerStatistics& statistics, std::uint64_t seed);

}  // namespace tts::model
