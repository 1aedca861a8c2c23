#include "resampler.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <soxr.h>

namespace tts::audio {
namespace {

constexpr std::uint32_t kBlocksPerSecond = 100;

}  // namespace

void Resampler::Delete::operator()(soxr* resampler) const { soxr_delete(resampler); }

std::unique_ptr<Resampler> Resampler::create(std::uint32_t input_rate, std::uint32_t output_rate) {
  soxr_error_t error = nullptr;
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  soxr_t resampler = soxr_create(input_rate, output_rate, 1, &error, nullptr, &quality, nullptr);
  if (error || !resampler) {
    soxr_delete(resampler);
    return nullptr;
  }
  return std::unique_ptr<Resampler>(new Resampler(input_rate, output_rate, resampler));
}

Resampler::Resampler(std::uint32_t input_rate, std::uint32_t output_rate, soxr* resampler)
    : input_rate_(input_rate),
      output_rate_(output_rate),
      blocks_(input_rate / kBlocksPerSecond),
      input_(input_rate / kBlocksPerSecond),
      scratch_(output_rate / kBlocksPerSecond + 1),
      resampler_(resampler) {}

void Resampler::push(std::span<const float> samples, std::vector<float>& out) {
  samples_in_ += samples.size();
  blocks_.push(samples, [&](std::span<const float> block) { write(block, out); });
}

void Resampler::finish(std::vector<float>& out) {
  blocks_.finish([&](std::span<const float> block) { write(block, out); });
  process(nullptr, 0, out);
  const std::uint64_t exact = (samples_in_ * output_rate_ + input_rate_ / 2) / input_rate_;
  // soxr rounds on its own; it is at most a sample away.
  out.resize(out.size() + static_cast<std::size_t>(exact) - static_cast<std::size_t>(samples_out_), 0.0F);
  samples_out_ = exact;
}

void Resampler::write(std::span<const float> block, std::vector<float>& out) {
  std::ranges::transform(block, input_.begin(), [](float sample) { return std::isfinite(sample) ? sample : 0.0F; });
  process(input_.data(), block.size(), out);
}

// samples == nullptr: end of input.
void Resampler::process(const float* samples, std::size_t count, std::vector<float>& out) {
  for (;;) {
    std::size_t used = 0;
    std::size_t made = 0;
    [[maybe_unused]] const soxr_error_t error =
        soxr_process(resampler_.get(), samples, count, &used, scratch_.data(), scratch_.size(), &made);
    assert(!error);
    out.insert(out.end(), scratch_.begin(), scratch_.begin() + static_cast<std::ptrdiff_t>(made));
    samples_out_ += made;
    if (samples) {
      samples += used;
      count -= used;
    }
    if (made < scratch_.size() && count == 0) return;
  }
}

}  // namespace tts::audio
