#pragma once
// Signals and measures that the audio tests share.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "tts/audio/encoder.h"

namespace tts::audio::test {

using Samples = std::vector<float>;

inline Samples sine(std::size_t count, std::uint32_t sample_rate, double hertz, double amplitude = 0.5) {
  Samples out(count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(amplitude * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / sample_rate));
  }
  return out;
}

// A buzz of 120 Hz with falling harmonics whose loudness swells four times a second: voiced speech, as codecs see it.
inline Samples voice(std::size_t count, std::uint32_t sample_rate) {
  Samples out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double t = static_cast<double>(i) / sample_rate;
    double value = 0;
    for (int harmonic = 1; harmonic <= 8; ++harmonic) value += std::sin(2 * std::numbers::pi * 120 * harmonic * t + harmonic) / harmonic;
    out[i] = static_cast<float>(0.15 * value * (0.6 + 0.4 * std::sin(2 * std::numbers::pi * 4 * t)));
  }
  return out;
}

// Power of `reference` over power of the difference, in dB; `got` may be longer.
inline double snr_db(std::span<const float> reference, std::span<const float> got) {
  double signal = 0;
  double noise = 1e-30;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    signal += double{reference[i]} * reference[i];
    noise += (double{reference[i]} - got[i]) * (double{reference[i]} - got[i]);
  }
  return 10 * std::log10(signal / noise);
}

// Calls f(piece) on consecutive pieces of `samples`; chunk == 0: pieces of ever-changing length, empty ones among them.
template <class F>
void in_chunks(std::span<const float> samples, std::size_t chunk, F&& f) {
  std::size_t odd = 0;
  while (!samples.empty()) {
    odd = (odd * 7 + 13) % 1021;
    const auto piece = samples.first(std::min(samples.size(), chunk ? chunk : odd % 5 == 0 ? std::size_t{0} : odd));
    f(piece);
    samples = samples.subspan(piece.size());
  }
}

inline Bytes encode(const EncoderOptions& options, std::span<const float> samples, std::size_t chunk) {
  auto made = make_encoder(options);
  Bytes out;
  if (!made) return out;
  Encoder& encoder = **made;
  encoder.start(out);
  in_chunks(samples, chunk, [&](std::span<const float> piece) { encoder.encode(piece, out); });
  encoder.finish(out);
  return out;
}

inline std::uint32_t u16_at(const Bytes& bytes, std::size_t at) { return bytes.at(at) | bytes.at(at + 1) << 8U; }
inline std::uint32_t u32_at(const Bytes& bytes, std::size_t at) { return u16_at(bytes, at) | u16_at(bytes, at + 2) << 16U; }

}  // namespace tts::audio::test
