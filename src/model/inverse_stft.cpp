#include "inverse_stft.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>

#include "polar.h"

namespace tts::model {
namespace {

constexpr float kMaxMagnitude = 100.0F;
constexpr double kMinEnvelope = 1e-8;  // below this the division would blow up rounding noise

}  // namespace

InverseStft::InverseStft(std::span<const float> window, std::size_t hop, std::uint32_t workers)
    : hop_(hop), fft_(window.size()), window_(window.begin(), window.end()) {
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
  for (std::uint32_t i = 0; i < workers; ++i) workers_.push_back({ops::AlignedBuffer(window.size() + 2), ops::AlignedBuffer(window.size())});
}

void InverseStft::reset(Tail& tail, std::int64_t frame) {
  std::fill(tail.sums.begin(), tail.sums.end(), 0.0F);
  tail.frames = frame;
}

void InverseStft::to_time(ops::ComputePool& pool, StreamRows& rows) {
  rows.map_rows(pool, fft_.size(), [&](const float* in, float* out, std::uint32_t worker) {
    Scratch& scratch = workers_[worker];
    polar_to_complex(in, in + fft_.bins(), fft_.bins(), kMaxMagnitude, scratch.spectrum.data());
    fft_.inverse(scratch.spectrum.data(), out, scratch.work.data());
    for (std::size_t i = 0; i < window_.size(); ++i) out[i] *= window_[i];
  });
}

std::size_t InverseStft::overlap_add(const float* frames, std::size_t count, bool last, const Blocks& wanted, Tail& tail,
                                     float* out) const {
  const std::size_t size = window_.size(), kept = size - hop_;
  float* const sums = tail.sums.data();
  float* const begin = out;
  const auto want = [&](std::int64_t block) { return block >= wanted.begin && block < wanted.end; };
  for (std::size_t f = 0; f < count; ++f) {
    const float* const frame = frames + f * size;
    const std::int64_t block = tail.frames++ - kLookaheadFrames;  // which this frame completes
    if (block >= 0 && want(block)) {
      write_block(sums, frame, block == 0 ? 0b0111U : 0b1111U, out);
      out += hop_;
    }
    for (std::size_t i = 0; i < kept - hop_; ++i) sums[i] = sums[hop_ + i] + frame[hop_ + i];
    std::copy_n(frame + kept, hop_, sums + kept - hop_);
  }
  if (const std::int64_t block = tail.frames - kLookaheadFrames; last && block >= 0 && want(block)) {  // without a frame of its own
    write_block(sums, nullptr, block == 0 ? 0b0110U : 0b1110U, out);
    out += hop_;
  }
  return static_cast<std::size_t>(out - begin);
}

void InverseStft::write_block(const float* sums, const float* newest, unsigned frames_present, float* out) const {
  const std::vector<float>& gain = gain_[frames_present];
  if (newest == nullptr) {
    for (std::size_t i = 0; i < hop_; ++i) out[i] = sums[i] * gain[i];
  } else {
    for (std::size_t i = 0; i < hop_; ++i) out[i] = (sums[i] + newest[i]) * gain[i];
  }
}

}  // namespace tts::model
