#include "pacing.h"

#include <algorithm>
#include <cmath>

namespace tts::scheduling {
namespace {

constexpr std::uint32_t kLeastChunk = 4;
constexpr double kLeastPace = 1.25;      // steps made in the time that one is heard, for early sound
constexpr double kMostEarlyShare = 0.15;  // of the machine's time
constexpr std::uint32_t kMostEarlyRows = 4;
constexpr double kHeadStart = 8;         // steps; of a first early piece when steps are made twice as fast as they are heard
constexpr Duration kPatientLeft = std::chrono::seconds(2);  // listeners with more get larger, cheaper pieces
// Streams stand still while a decode runs.
constexpr Duration kLeastBudget = std::chrono::milliseconds(15);
constexpr Duration kMostBudget = std::chrono::milliseconds(60);

}  // namespace

Pacing::Pacing(const SchedulerOptions& options, const engine::EngineInfo& info, const CostModel& costs)
    : costs_(costs),
      urgency_rules_{.max_lead = options.max_lead},
      low_ramp_(options.chunk_ramp, options.chunk_steps, true),
      exact_ramp_(options.chunk_ramp, options.chunk_steps, false),
      default_mode_(options.latency == LatencyMode::kLow     ? Mode::kLow
                    : options.latency == LatencyMode::kExact ? Mode::kExact
                                                             : Mode::kAuto),
      exact_within_(options.exact_within),
      sample_rate_(info.sample_rate),
      samples_per_step_(info.samples_per_step),
      max_pending_(info.max_pending_steps),
      exact_lookahead_(info.lookahead_steps),
      low_lookahead_(std::min(options.lookahead, info.lookahead_steps)),
      chunk_steps_(options.chunk_steps),
      prefill_chunk_(options.prefill_chunk),
      audio_per_step_(heard_in(info.samples_per_step)) {}

void Pacing::begin_turn(std::uint32_t stepping, std::uint32_t early, TimePoint now) noexcept {
  early_rows_ = early;
  round_ = costs_.known() ? costs_.round(std::max(stepping, 1U)) : Duration(0);
  // Early sound pays only while steps are made faster than they are heard: else the row never reaches the exact lookahead, each of its
  // pieces costs that much extra, and the machine has less time for all.
  const bool room = early < kMostEarlyRows && costs_.early_share(now) < kMostEarlyShare;
  most_early_pace_ = room ? made_per_heard() / kLeastPace : 0;
}

Duration Pacing::heard_in(std::uint64_t samples, double pace) const noexcept {
  constexpr std::uint64_t kTicksPerSecond = Duration(std::chrono::seconds(1)).count();
  return Duration(static_cast<Duration::rep>(static_cast<double>(samples * kTicksPerSecond / sample_rate_) / pace));
}

// Steps made in the time in which one is heard.
double Pacing::made_per_heard() const noexcept {
  return static_cast<double>(audio_per_step_.count()) / static_cast<double>(std::max(round_, Duration(1)).count());
}

Pacing::Mode Pacing::mode_of(const Row& row) const noexcept {
  if (row.is_whole()) return Mode::kExact;
  switch (row.utterance->request.latency) {
    case engine::Latency::kLow: return Mode::kLow;
    case engine::Latency::kExact: return Mode::kExact;
    case engine::Latency::kDefault: break;
  }
  return default_mode_;
}

// T steps are (T - 1/2) steps of samples once all are out.
std::uint32_t Pacing::unheard(const Row& row) const noexcept {
  if (row.samples == 0) return row.steps;
  const auto heard = (row.samples + samples_per_step_ / 2) / samples_per_step_;
  return row.steps - static_cast<std::uint32_t>(std::min<std::uint64_t>(heard, row.steps));
}

// A first piece must last until the second can be there, and the longer the slower the row gains on its listener.
std::uint32_t Pacing::first_early_chunk(double pace) const noexcept {
  const double gain = made_per_heard() / pace - 1;
  const double head_start = gain > 0 ? kHeadStart / gain : chunk_steps_;
  // Others may need an early piece at the same time.
  const Duration until_second = urgency_rules_.thin + (1 + early_rows_) * (round_ + costs_.decode(exact_lookahead_)) + kLeastChunk * round_;
  const double lasting = pace * static_cast<double>(until_second.count()) / static_cast<double>(audio_per_step_.count());
  const double steps = std::ceil(std::min({std::max(head_start, lasting), static_cast<double>(chunk_steps_)}));
  return std::max(low_ramp_.steps(0), static_cast<std::uint32_t>(steps));
}

std::uint32_t Pacing::chunk_of(const Row& row, bool low, Duration left) const noexcept {
  if (row.is_whole()) return max_pending_;
  const ChunkRamp& ramp = low ? low_ramp_ : exact_ramp_;
  if (!row.playback.started()) return low ? first_early_chunk(row.pace()) : ramp.steps(0);
  if (left >= kPatientLeft) return std::max(chunk_steps_, std::min(max_pending_, 2 * chunk_steps_));
  // A later sentence begins with a listener who has something to hear: nothing is gained by a small piece.
  return row.pieces == 0 ? chunk_steps_ : ramp.steps(row.pieces);
}

bool Pacing::may_be_early(const Row& row, std::uint32_t unheard, TimePoint now) const noexcept {
  const Mode mode = mode_of(row);
  if (mode == Mode::kExact) return false;
  if (row.early) return true;
  if (row.pace() > most_early_pace_) return false;
  if (mode == Mode::kLow || row.playback.started()) return true;
  const std::uint32_t wanted = exact_lookahead_ + exact_ramp_.steps(0);
  const Duration still = (wanted - std::min(wanted, unheard)) * round_ + costs_.decode(wanted);
  return now - row.utterance->submitted_at + still > exact_within_;
}

Duration Pacing::next_sound(const Row& row, std::uint32_t prefill_left) const noexcept {
  const std::uint32_t waiting = unheard(row);
  if (row.stop != engine::StopReason::kNone) return costs_.decode(waiting + exact_lookahead_);
  const bool early = mode_of(row) == Mode::kLow || row.early;
  const std::uint32_t wanted = (early ? low_lookahead_ : exact_lookahead_) + kLeastChunk;
  const std::uint32_t steps = wanted - std::min(wanted, waiting) + (prefill_left + prefill_chunk_ - 1) / prefill_chunk_;
  return steps * round_ + costs_.prefill(prefill_left) + costs_.decode(wanted);
}

Duration Pacing::spare(const Row& row, std::uint32_t prefill_left, TimePoint now) const noexcept {
  return row.playback.left(now) - next_sound(row, prefill_left);
}

Duration Pacing::covered(const Row& row, TimePoint now) const noexcept {
  if (row.is_whole()) return Duration::max();
  return row.playback.left(now) + heard_in(std::uint64_t{unheard(row)} * samples_per_step_, row.pace());
}

Urgency Pacing::urgency(const Row& row, std::uint32_t prefill_left, TimePoint now) const noexcept {
  return urgency_of({.whole = row.is_whole(),
                     .follows = row.follows,
                     .early = row.early,
                     .started = row.playback.started(),
                     .left = row.playback.left(now),
                     .next_sound = next_sound(row, prefill_left)},
                    urgency_rules_);
}

DecodeRow Pacing::decode_row(const Row& row, std::uint32_t pending, TimePoint now) const noexcept {
  const std::uint32_t waiting = unheard(row);
  const Duration left = row.playback.left(now);
  const bool early = may_be_early(row, waiting, now);
  return {.pending = pending,
          .unheard = waiting,
          .chunk = chunk_of(row, early, left),
          .urgency = row.urgency,
          .whole = row.is_whole(),
          .silent = !row.playback.started() && !row.is_whole(),
          .steady = row.is_whole() || exact_ramp_.steady(row.pieces),
          .may_be_early = early,
          .left = left,
          .ended = row.stop != engine::StopReason::kNone,
          .runnable = row.runnable() && !row.is_text() && !row.complete()};
}

DecodeRules Pacing::decode_rules(bool needed_now, bool anyone_listens, Duration least_spare, bool slots_wanted) const noexcept {
  const Duration reserve = urgency_rules_.thin + round_;
  const Duration budget = needed_now ? kLeastBudget : std::clamp(least_spare - reserve, kLeastBudget, kMostBudget);
  return {.max_pending = max_pending_,
          .exact_lookahead = exact_lookahead_,
          .low_lookahead = low_lookahead_,
          .least_chunk = kLeastChunk,
          .reserve = reserve,
          .budget = anyone_listens ? budget : Duration::max(),
          .slots_wanted = slots_wanted};
}

}  // namespace tts::scheduling
