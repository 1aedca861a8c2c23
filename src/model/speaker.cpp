#include "speaker.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include <c10/util/Half.h>

#include "tts/model/model.h"

#include "base16384.h"
#include "gfsq.h"
#include "lzma2.h"

namespace tts::model {
namespace {

// A stream may be a little longer than its content when compression does not help: control bytes per chunk and an end byte.
std::size_t max_stream_bytes(std::size_t content) { return content + content / 1024 + 64; }

std::uint16_t read_u16(std::span<const std::uint8_t> bytes, std::size_t index) {
  return static_cast<std::uint16_t>(bytes[2 * index] | bytes[2 * index + 1] << 8);
}

void append_u16(std::vector<std::uint8_t>& bytes, std::uint16_t value) {
  bytes.push_back(static_cast<std::uint8_t>(value & 0xFF));
  bytes.push_back(static_cast<std::uint8_t>(value >> 8));
}

Error invalid(std::string why) { return {ErrorCode::kInvalidArgument, std::move(why)}; }

float round_to_half(float value) { return static_cast<float>(c10::Half(value)); }

// Little-endian half-precision values; an error when one is NaN or infinite.
Result<std::vector<float>> read_halves(std::span<const std::uint8_t> bytes) {
  std::vector<float> values(bytes.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(c10::Half(read_u16(bytes, i), c10::Half::from_bits()));
  if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
    return invalid("the speaker holds NaN or infinity");
  return values;
}

// SplitMix64: a full-period mixer whose successive outputs are independent enough to seed a voice.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9E3779B97F4A7C15U;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27) * 0x94D049BB133111EBU;
  return z ^ z >> 31;
}

double next_uniform(std::uint64_t& state) { return (static_cast<double>(next_random(state) >> 11) + 0.5) * 0x1.0p-53; }  // (0, 1)

}  // namespace

Result<engine::SpeakerVector> parse_speaker_string(std::string_view utf8, std::uint32_t hidden_size) {
  const std::size_t bytes = std::size_t{hidden_size} * 2;
  const auto stream = decode_base16384(utf8, max_stream_bytes(bytes));
  if (!stream) return stream.error();
  const auto content = decode_lzma2(*stream, bytes);
  if (!content) return content.error();
  auto values = read_halves(*content);
  if (!values) return values.error();
  return engine::SpeakerVector(std::make_shared<const std::vector<float>>(std::move(values).value()));
}

std::string format_speaker_string(std::span<const float> speaker) {
  std::vector<std::uint8_t> bytes;
  for (const float value : speaker) append_u16(bytes, c10::Half(value).x);
  return encode_base16384(store_lzma2(bytes));
}

Result<std::vector<engine::CodeFrame>> parse_reference_string(std::string_view utf8, std::size_t max_frames) {
  constexpr std::size_t kShapeBytes = 4;
  const std::size_t max_bytes = max_frames * engine::kCodebooks * 2;
  const auto packed = decode_base16384(utf8, kShapeBytes + max_stream_bytes(max_bytes));
  if (!packed) return packed.error();
  if (packed->size() < kShapeBytes) return invalid("the reference string is too short");
  const std::size_t rows = read_u16(*packed, 0), frames = read_u16(*packed, 1);
  if (rows != engine::kCodebooks || frames == 0) return invalid("the reference string does not hold codes of 4 codebooks");
  if (frames > max_frames) return Error{ErrorCode::kTooLarge, "the reference is longer than " + std::to_string(max_frames) + " frames"};
  const auto content = decode_lzma2(std::span(*packed).subspan(kShapeBytes), frames * engine::kCodebooks * 2);
  if (!content) return content.error();
  std::vector<engine::CodeFrame> codes(frames);
  for (std::size_t q = 0; q < engine::kCodebooks; ++q) {
    for (std::size_t t = 0; t < frames; ++t) {
      codes[t][q] = read_u16(*content, q * frames + t);
      if (codes[t][q] >= Gfsq::kCodes) return invalid("the reference holds a code that does not exist");
    }
  }
  return codes;
}

std::string format_reference_string(std::span<const engine::CodeFrame> frames) {
  assert(!frames.empty() && frames.size() <= 0xFFFF);
  std::vector<std::uint8_t> content, packed;
  for (std::size_t q = 0; q < engine::kCodebooks; ++q) {
    for (const engine::CodeFrame& frame : frames) append_u16(content, frame[q]);
  }
  append_u16(packed, engine::kCodebooks);
  append_u16(packed, static_cast<std::uint16_t>(frames.size()));
  const std::vector<std::uint8_t> stream = store_lzma2(content);
  packed.insert(packed.end(), stream.begin(), stream.end());
  return encode_base16384(packed);
}

Result<SpeakerStatistics> parse_speaker_statistics(std::string_view utf8, std::uint32_t hidden_size) {
  const std::size_t bytes = std::size_t{hidden_size} * 4;
  const auto content = decode_base16384(utf8, bytes);
  if (!content) return content.error();
  if (content->size() != bytes) return invalid("the speaker statistics belong to a model of another size");
  const auto values = read_halves(*content);
  if (!values) return values.error();
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>(hidden_size);
  return SpeakerStatistics{{values->begin(), middle}, {middle, values->end()}};
}

std::vector<float> speaker_from_noise(const SpeakerStatistics& statistics, std::span<const float> noise) {
  assert(noise.size() == statistics.mean.size());
  std::vector<float> speaker(noise.size());
  for (std::size_t i = 0; i < speaker.size(); ++i) {
    speaker[i] = round_to_half(round_to_half(noise[i] * statistics.deviation[i]) + statistics.mean[i]);
  }
  return speaker;
}

std::vector<float> random_speaker(const SpeakerStatistics& statistics, std::uint64_t seed) {
  std::vector<float> noise(statistics.mean.size());
  std::uint64_t state = seed;
  for (std::size_t i = 0; i < noise.size(); ++i) {  // Box-Muller, one of each pair
    const double radius = std::sqrt(-2.0 * std::log(next_uniform(state)));
    noise[i] = round_to_half(static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * next_uniform(state))));
  }
  return speaker_from_noise(statistics, noise);
}

}  // namespace tts::model
