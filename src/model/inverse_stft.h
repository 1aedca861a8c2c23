#pragma once
// Centred inverse STFT with n_fft = 4 * hop, frame by frame, with the overlap kept between calls.
//
// Block b of the uncut signal (hop samples) sums frames b - 3 .. b; the first and last two blocks are cut away, so F frames give
// (F - 1) * hop samples. Each block is divided by the overlap-added square of the window of the frames that exist.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/compute_pool.h"
#include "stream_rows.h"

namespace tts::model {

class InverseStft {
 public:
  static constexpr std::size_t kOverlap = 4;          // n_fft / hop
  static constexpr std::size_t kLookaheadFrames = 2;  // frames after its own that a block has to wait for

  // What one stream keeps between calls.
  struct Tail {
    std::vector<float> sums;   // the next three blocks, so far
    std::uint64_t frames = 0;  // added since reset
  };

  // `window` has n_fft = 4 * hop values. Throws std::runtime_error when it cannot be inverted. `workers` is that of the pool.
  InverseStft(std::span<const float> window, std::size_t hop, std::uint32_t workers);
  ~InverseStft();

  Tail make_tail() const { return {std::vector<float>((kOverlap - 1) * hop_), 0}; }
  static void reset(Tail& tail);

  // Rows of n_fft / 2 + 1 log-magnitudes and phases become rows of n_fft windowed samples.
  void to_time(ops::ComputePool& pool, StreamRows& rows);

  // Adds `count` such frames and writes the blocks that are complete; returns the samples written. `out` has room for
  // (count + (last ? 1 : 0)) * hop samples.
  std::size_t overlap_add(std::span<const float> frames, std::size_t count, bool last, Tail& tail, std::span<float> out) const;

 private:
  struct Fft;  // one worker's transform: the library's plan holds scratch memory

  void write_block(const float* sums, unsigned frames_present, float* out) const;

  std::size_t hop_;
  std::vector<float> window_;                            // with the 1 / n_fft of the transform
  std::array<std::vector<float>, 1U << kOverlap> gain_;  // by which of frames b, b - 1, b - 2, b - 3 exist (bits 0 to 3)
  std::vector<std::unique_ptr<Fft>> workers_;
};

}  // namespace tts::model
