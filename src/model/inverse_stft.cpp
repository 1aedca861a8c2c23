#include "inverse_stft.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <stdexcept>
#include <string>

#include <kissfft/kiss_fftr.h>

#include "polar.h"

namespace tts::model {
namespace {

constexpr float kMaxMagnitude = 100.0F;
constexpr double kMinEnvelope = 1e-8;  // below this the division would blow up rounding noise

}  // namespace

struct InverseStft::Fft {
  explicit Fft(std::size_t size) : plan(kiss_fftr_alloc(static_cast<int>(size), 1, nullptr, nullptr)), spectrum(size + 2) {
    if (plan == nullptr) throw std::bad_alloc();
  }
  ~Fft() { kiss_fftr_free(plan); }
  Fft(const Fft&) = delete;
  Fft& operator=(const Fft&) = delete;

  kiss_fftr_cfg plan;
  std::vector<float> spectrum;  // real and imaginary parts of size / 2 + 1 bins
};

InverseStft::InverseStft(std::span<const float> window, std::size_t hop, std::uint32_t workers)
    : hop_(hop), window_(window.begin(), window.end()) {
  assert(window.size() == kOverlap * hop);
  // A block in the middle of an utterance sees all four frames; at its ends the newest or the oldest is missing. Frames b - 1 and
  // b - 2 always exist in a block that is kept.
  for (unsigned present = 0; present < gain_.size(); ++present) {
    if ((present & 0b0110U) != 0b0110U) continue;
    for (std::size_t i = 0; i < hop; ++i) {
      double envelope = 0;
      for (std::size_t frame = 0; frame < kOverlap; ++frame) {
        const double w = window[frame * hop + i];
        if ((present >> frame & 1U) != 0) envelope += w * w;
      }
      if (!(envelope > kMinEnvelope)) throw std::runtime_error("the window of the inverse STFT does not cover sample " + std::to_string(i));
      gain_[present].push_back(static_cast<float>(1.0 / envelope));
    }
  }
  for (float& w : window_) w /= static_cast<float>(window.size());
  for (std::uint32_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Fft>(window.size()));
}

InverseStft::~InverseStft() = default;

void InverseStft::reset(Tail& tail) {
  std::fill(tail.sums.begin(), tail.sums.end(), 0.0F);
  tail.frames = 0;
}

void InverseStft::to_time(ops::ComputePool& pool, StreamRows& rows) {
  const std::size_t size = window_.size(), bins = size / 2 + 1;
  rows.map_rows(pool, size, [&](const float* in, float* out, std::uint32_t worker) {
    Fft& fft = *workers_[worker];
    polar_to_complex(in, in + bins, bins, kMaxMagnitude, fft.spectrum.data());
    // The transform ignores the imaginary parts of the first and the last bin, as the model expects.
    kiss_fftri(fft.plan, reinterpret_cast<const kiss_fft_cpx*>(fft.spectrum.data()), out);
    for (std::size_t i = 0; i < size; ++i) out[i] *= window_[i];
  });
}

std::size_t InverseStft::overlap_add(std::span<const float> frames, std::size_t count, bool last, Tail& tail, std::span<float> out) const {
  const std::size_t size = window_.size(), kept = size - hop_;
  std::size_t written = 0;
  for (std::size_t f = 0; f < count; ++f) {
    const float* const frame = frames.data() + f * size;
    float* const sums = tail.sums.data();
    // Frame number b completes block b.
    const std::uint64_t block = tail.frames++;
    if (block >= kLookaheadFrames) {
      float* const to = out.data() + written;
      for (std::size_t i = 0; i < hop_; ++i) to[i] = sums[i] + frame[i];
      write_block(to, block == kLookaheadFrames ? 0b0111U : 0b1111U, to);
      written += hop_;
    }
    for (std::size_t i = 0; i < kept; ++i) sums[i] = (i + hop_ < kept ? sums[i + hop_] : 0.0F) + frame[hop_ + i];
  }
  if (last && tail.frames >= kLookaheadFrames) {  // block F, without a frame of its own
    write_block(tail.sums.data(), tail.frames == kLookaheadFrames ? 0b0110U : 0b1110U, out.data() + written);
    written += hop_;
  }
  return written;
}

void InverseStft::write_block(const float* sums, unsigned frames_present, float* out) const {
  const std::vector<float>& gain = gain_[frames_present];
  for (std::size_t i = 0; i < hop_; ++i) out[i] = sums[i] * gain[i];
}

}  // namespace tts::model
