#pragma once
// Band-limited conversion of the sample rate (soxr, 20-bit quality, linear phase).

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tts/audio/packetizer.h"

struct soxr;

namespace tts::audio {

// Not thread-safe. n samples become exactly n * output_rate / input_rate, rounded to nearest, without delay at the start.
// Non-finite samples count as silence.
class Resampler {
 public:
  // nullptr: soxr refused.
  static std::unique_ptr<Resampler> create(std::uint32_t input_rate, std::uint32_t output_rate);

  void push(std::span<const float> samples, std::vector<float>& out);
  void finish(std::vector<float>& out);

 private:
  struct Delete {
    void operator()(soxr* resampler) const;
  };

  Resampler(std::uint32_t input_rate, std::uint32_t output_rate, soxr* resampler);
  void write(std::span<const float> block, std::vector<float>& out);
  void process(const float* samples, std::size_t count, std::vector<float>& out);

  const std::uint64_t input_rate_;
  const std::uint64_t output_rate_;
  std::uint64_t samples_in_ = 0;
  std::uint64_t samples_out_ = 0;
  Packetizer blocks_;  // soxr sees equal blocks however the input is cut
  std::vector<float> input_, scratch_;
  std::unique_ptr<soxr, Delete> resampler_;
};

}  // namespace tts::audio
