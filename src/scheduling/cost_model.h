#pragma once
// What steps and decodes take on this machine just now, and what follows from it: how many streams it can serve.

#include <cstdint>
#include <span>

#include "tts/base/clock.h"

#include "cost_curve.h"

namespace tts::scheduling {

// Not thread-safe. Times are what passed on the scheduler's clock from the start of the work to its end, so whatever else uses the
// machine counts. Allocates nothing.
class CostModel {
 public:
  // audio_per_step: what one generated step is heard as. chunk_steps: of a usual decode.
  CostModel(Duration audio_per_step, std::uint32_t chunk_steps) noexcept;

  void step_took(std::uint32_t decode_rows, std::uint32_t prefill_tokens, Duration time) noexcept;
  // work: generated steps that went through the decoder, flushed ones and those computed ahead without being kept included.
  // steps: of them, those that are new. early: of them, those computed ahead.
  void decode_took(std::uint32_t work, std::uint32_t steps, std::uint32_t early, Duration time, TimePoint now) noexcept;

  bool known() const noexcept;  // enough was seen to rely on

  // Zero while nothing was seen.
  Duration step(std::uint32_t decode_rows) const noexcept;
  Duration prefill(std::uint32_t tokens) const noexcept;  // on top of the step it rides on
  Duration decode(std::uint32_t work) const noexcept;

  // Rows that a step should serve where so many want one: all, or fewer in turn where the machine then makes noticeably more steps.
  std::uint32_t rows_at_once(std::uint32_t rows) const noexcept;

  // Until each of so many rows has had one step, together with the decoding of it and the prompts that come with it.
  Duration round(std::uint32_t rows) const noexcept;

  // Share of the machine's time that streams need whose listeners hear so many seconds of sound in a second, fastest first: who hears
  // faster needs more steps in the same time, in which the others need no part. 0 = not known.
  double share_needed(std::span<const double> paces) const noexcept;

  // Share of the last seconds that went into steps computed ahead without being kept: the price of early sound.
  double early_share(TimePoint now) const noexcept;

  // Streams that can be kept at real time with `load` of the machine's time; at most `most`. 0 = not known. A machine too slow for
  // one stream still serves one.
  std::uint32_t realtime_streams(double load, std::uint32_t most) const noexcept;

 private:
  // Sums that forget: a ratio of recent totals.
  struct Ratio {
    double over = 0, under = 0;
    void add(double above, double below) noexcept;
    double value() const noexcept { return under > 0 ? over / under : 0; }
  };

  double decode_seconds_per_step(std::uint32_t rows) const noexcept;

  const double audio_per_step_;
  const std::uint32_t chunk_steps_;
  CostCurve steps_;
  CostCurve decodes_;
  Ratio prefill_;         // seconds per prompt position
  Ratio prompts_;         // prompt positions per generated step
  Ratio decode_surplus_;  // decoder work per new step, at least 1; without early pieces, which nobody gets when the machine is full
  double early_seconds_ = 0;  // fading sum, as of early_at_
  TimePoint early_at_{};
};

}  // namespace tts::scheduling
