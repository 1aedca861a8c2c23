#pragma once
// Centred inverse STFT with n_fft = 4 * hop, frame by frame, with the overlap kept between calls.
//
// Block b of the uncut signal (hop samples) sums frames b - 3 .. b; the first and last two blocks are cut away, so F frames give
// (F - 1) * hop samples: output block b sums frames b - 1 .. b + 2. Each block is divided by the overlap-added square of the window of
// the frames that exist.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ops/aligned_buffer.h"
#include "ops/compute_pool.h"
#include "real_fft.h"
#include "stream_rows.h"

namespace tts::model {

class InverseStft {
 public:
  static constexpr std::size_t kOverlap = 4;         // n_fft / hop
  static constexpr std::int64_t kFramesBefore = 1;   // that an output block sums, beside its own
  static constexpr std::int64_t kLookaheadFrames = 2;  // the same, after its own

  // What one stream keeps between calls.
  struct Tail {
    std::vector<float> sums;  // the next three blocks, so far
    std::int64_t frames = 0;  // number of the next frame
  };

  // Output blocks [begin, end).
  struct Blocks {
    std::int64_t begin = 0, end = std::numeric_limits<std::int64_t>::max();
  };

  // `window` has n_fft = 4 * hop values. Throws std::runtime_error when it cannot be inverted. `workers` is that of the pool.
  InverseStft(std::span<const float> window, std::size_t hop, std::uint32_t workers);

  Tail make_tail() const { return {std::vector<float>((kOverlap - 1) * hop_), 0}; }
  // As before frame number `frame`, with nothing known of the earlier ones.
  static void reset(Tail& tail, std::int64_t frame = 0);

  // Rows of n_fft / 2 + 1 log-magnitudes and phases become rows of n_fft windowed samples.
  void to_time(ops::ComputePool& pool, StreamRows& rows);

  // Adds `count` such frames, which lie one behind the other, and writes the wanted ones of the blocks that are complete; returns the
  // samples written. `last`: no frame follows, so the block after the newest frame is complete too. Any thread, other tails meanwhile.
  std::size_t overlap_add(const float* frames, std::size_t count, bool last, const Blocks& wanted, Tail& tail, float* out) const;

 private:
  struct Scratch {
    ops::AlignedBuffer spectrum, work;
  };

  void write_block(const float* sums, const float* newest, unsigned frames_present, float* out) const;

  std::size_t hop_;
  RealFft fft_;
  std::vector<float> window_;                            // with the 1 / n_fft of the transform
  std::array<std::vector<float>, 1U << kOverlap> gain_;  // by which of frames b, b - 1, b - 2, b - 3 exist (bits 0 to 3)
  std::vector<Scratch> workers_;
};

}  // namespace tts::model
