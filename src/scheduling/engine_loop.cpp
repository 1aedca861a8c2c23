#include "engine_loop.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <functional>
#include <random>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "admission.h"

namespace tts::scheduling {
namespace {

using engine::StopReason;

constexpr std::uint64_t kStepsBetweenOutlooks = 32;
constexpr Duration kCopyBudget = std::chrono::milliseconds(10);

std::string_view metric_name(StopReason stop) noexcept {
  switch (stop) {
    case StopReason::kEndToken: return "end_token";
    case StopReason::kMaxSteps: return "max_steps";
    case StopReason::kCancelled: return "cancelled";
    case StopReason::kDeadline: return "deadline";
    case StopReason::kFailed: return "failed";
    case StopReason::kNone: break;
  }
  return "none";
}

// A sink is other people's code: whatever it throws must not stop the other utterances.
template <class Call>
bool call_sink(const Utterance& utterance, Call call) noexcept {
  try {
    call();
    return true;
  } catch (const std::exception& failure) {
    spdlog::warn("request {}: the receiver of utterance {} failed: {}", utterance.request.request_id, utterance.id, failure.what());
  } catch (...) {
    spdlog::warn("request {}: the receiver of utterance {} failed", utterance.request.request_id, utterance.id);
  }
  return false;
}

void give_final_error(Mailbox& mailbox, observability::Metrics& metrics, Utterance& utterance, StopReason stop, const Error& error) {
  mailbox.forget(utterance.id);
  const auto sink = std::exchange(utterance.sink, nullptr);
  call_sink(utterance, [&] { sink->on_error(error); });
  metrics.utterance_finished(metric_name(stop));
}

struct Ending {
  StopReason stop = StopReason::kNone;  // kNone = goes on
  Error error;
};

Ending early_ending(const Utterance& utterance, TimePoint now, bool cut) {
  if (utterance.cancelled.load(std::memory_order_relaxed)) return {StopReason::kCancelled, {ErrorCode::kCancelled, "cancelled", {}, {}}};
  if (now >= utterance.request.deadline) {
    return {StopReason::kDeadline, {ErrorCode::kDeadlineExceeded, "the request's deadline passed before its audio was complete", {}, {}}};
  }
  if (cut) return {StopReason::kCancelled, {ErrorCode::kUnavailable, "this engine is stopping; try another replica", {}, {}}};
  return {};
}

std::uint64_t random_word() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32U) | device();
}

}  // namespace

EngineLoop::EngineLoop(engine::StepEngine& engine, const SchedulerOptions& options, const Clock& clock, observability::Metrics& metrics,
                       Mailbox& mailbox, Progress& progress)
    : engine_(engine),
      options_(options),
      clock_(clock),
      metrics_(metrics),
      mailbox_(mailbox),
      progress_(progress),
      costs_(std::chrono::duration_cast<Duration>(
                 std::chrono::duration<double>(static_cast<double>(engine.info().samples_per_step) / engine.info().sample_rate)),
             options.chunk_steps),
      pacing_(options, engine.info(), costs_),
      step_limits_{.max_rows = engine.info().max_rows_per_step,
                   .max_pending = engine.info().max_pending_steps,
                   .prefill_chunk = options.prefill_chunk},
      error_ids_(random_word()),
      parking_(engine, options, metrics),
      pcm_stride_(engine.max_decode_samples(engine.info().max_pending_steps, true)),
      pcm_(std::make_unique_for_overwrite<float[]>(pcm_stride_ * options.max_batch)) {
  rows_.reserve(options.max_batch);
  failed_.reserve(options.max_batch);
  step_rows_.reserve(options.max_batch);
  step_plan_.reserve(options.max_batch);
  outcomes_.reserve(options.max_batch);
  decode_rows_.reserve(options.max_batch);
  decode_plan_.reserve(options.max_batch);
  decode_work_.reserve(options.max_batch);
  paces_.reserve(options.max_batch + 1);
}

EngineLoop::Turn EngineLoop::turn() {
  const bool stopping = mailbox_.stopping();  // before taking work: what was posted earlier is then seen below
  worked_ = false;
  now_ = clock_.now();
  take_new_work();
  drop_cancelled_and_expired();
  hear_listeners();
  bring_back();
  weigh_needs();
  admit();
  plan();
  step();
  do {
    decode();
    deliver();
  } while (decode_plan_.more_are_short);
  free_finished();
  const bool finished = stopping && waiting_.empty() && rows_.empty() && parking_.empty();
  return {.worked = worked_, .finished = finished, .wake_at = worked_ || finished ? now_ : next_wake()};
}

void EngineLoop::take_new_work() {
  mailbox_.take(arrivals_);
  for (auto& utterance : arrivals_) waiting_.enter(std::move(utterance));
  arrivals_.clear();
}

void EngineLoop::drop_cancelled_and_expired() {
  const bool cut = now_ >= mailbox_.cut_at();
  waiting_.remove_if([&](Utterance& utterance) {
    const Ending ending = early_ending(utterance, now_, cut);
    if (ending.stop == StopReason::kNone) return false;
    mailbox_.leave_queue(utterance);
    give_final_error(mailbox_, metrics_, utterance, ending.stop, ending.error);
    return true;
  });
  for_each_let_in([&](Row& row) {
    if (Ending ending = early_ending(*row.utterance, now_, cut); ending.stop != StopReason::kNone) {
      end(row, ending.stop, std::move(ending.error));
    }
  });
  remove_gone();
}

// What senders say of their listeners: what these have to hear, and whether they have enough for now.
void EngineLoop::hear_listeners() {
  bool anything_new = false;
  for_each_let_in([&](Row& row) {
    if (const auto report = row.utterance->take_report()) row.playback.correct(*report);
    const bool paused = row.utterance->paused.load(std::memory_order_relaxed);
    if (paused && row.playback.started()) row.playback.at_least_until(now_);
    if (paused == row.paused) return;
    row.paused = paused;
    row.may_leave_at = now_ + options_.park_after;
    anything_new = true;
  });
  if (anything_new) publish_outlook();
}

// Whoever was let in goes on before anybody new comes, and needs only a slot: the listener counts whether it has one or not.
void EngineLoop::bring_back() {
  bool changed = false;
  while (parking_.returning() > 0 && has_time_to_copy()) {
    if (rows_.size() >= options_.max_batch && !free_a_slot(parking_.first_to_return())) break;
    Row& row = *parking_.first_to_return();
    if (const Status back = parking_.unpark(row); back.ok()) {
      const auto later = [](std::uint64_t admission, const Row& other) { return admission < other.admission; };
      rows_.insert(std::upper_bound(rows_.begin(), rows_.end(), row.admission, later), std::move(row));
    } else if (back.error().code == ErrorCode::kQueueFull) {
      break;
    } else {
      end(row, StopReason::kFailed, back.error());
    }
    parking_.remove_gone();
    changed = worked_ = true;
  }
  if (changed) rows_changed();
}

// The row that has been paused for longest leaves its slot. for_whom: a parked row that will have it; null = somebody new.
bool EngineLoop::free_a_slot(const Row* for_whom) {
  const std::size_t room_to_come = for_whom == nullptr ? 0 : for_whom->parked->bytes();
  while (Row* const row = parking_.first_to_leave(rows_, now_, room_to_come)) {
    if (!has_time_to_copy()) return false;
    if (!parking_.park(*row, now_)) continue;
    rows_.erase(rows_.begin() + (row - rows_.data()));
    worked_ = true;
    rows_changed();
    return true;
  }
  return false;
}

// Streams stand still while rows leave slots and come back: one copy a turn is always made, more while they are short. The rest is for the
// next turn.
bool EngineLoop::has_time_to_copy() {
  if (clock_.now() - now_ < kCopyBudget) return true;
  worked_ = true;
  return false;
}

// Who needs the engine most.
void EngineLoop::weigh_needs() {
  const auto early = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.early && row.runnable(); });
  pacing_.begin_turn(static_cast<std::uint32_t>(step_plan_.rows.size() + step_plan_.waiting.size()), static_cast<std::uint32_t>(early), now_);
  needed_now_ = anyone_listens_ = false;
  least_spare_ = Duration::max();
  for (Row& row : rows_) {
    const std::uint32_t prefill_left = engine_.prefill_left(row.slot);
    row.urgency = pacing_.urgency(row, prefill_left, now_);
    if (!row.runnable() || row.is_whole()) continue;
    anyone_listens_ = true;
    needed_now_ |= row.urgency == Urgency::kNow;
    // A sentence that is still joining is not helped by a smaller share for joining ones.
    if (row.playback.started() && !row.follows && prefill_left == 0) {
      least_spare_ = std::min(least_spare_, pacing_.spare(row, prefill_left, now_));
    }
  }
}

AdmissionState EngineLoop::admission_state(TimePoint slots_wanted_at) const {
  AdmissionState state;
  state.waiting = waiting_.count(let_in());
  state.active = static_cast<std::uint32_t>(rows_.size()) + parking_.returning() - parking_.can_leave(rows_, slots_wanted_at);
  state.listeners = state.waiting.due;
  for_each_let_in([&](const Row& row) {
    if (row.paused) return;
    state.whole += row.is_whole() ? 1 : 0;
    state.listeners += row.is_whole() || row.follows ? 0 : 1;
  });
  state.whole_passed_over = whole_passed_over_;
  state.listener_short = pacing_.is_thin(least_spare_);
  state.oldest_submitted = waiting_.oldest_submitted();
  state.now = now_;
  return state;
}

void EngineLoop::admit() {
  admission_at_ = TimePoint::max();
  if (waiting_.empty() || parking_.returning() > 0) return;  // the next slot is theirs
  // Nobody joins a stopping engine later, so there is no company to wait for.
  const auto window = mailbox_.stopping() ? std::chrono::milliseconds(0) : options_.batch_window;
  const AdmissionRules rules{.max_batch = options_.max_batch, .realtime_streams = realtime_streams(), .batch_window = window};
  bool admitted = false;
  for (;;) {
    auto state = admission_state(now_);
    if (state.waiting.newcomers > 0) state.newcomer_fits = keeps_up_with(waiting_.first_newcomer().request.pace);
    if (admitted) state.now = TimePoint::max();  // company has come: the rest of it does not wait
    const auto decision = decide_admission(state, rules);
    admission_at_ = decision.wait_until;
    if (decision.next == Next::kNobody) break;
    if (rows_.size() >= options_.max_batch && !free_a_slot()) break;
    auto utterance = waiting_.take(decision.next, let_in());
    whole_passed_over_ = decision.next == Next::kWhole || state.waiting.whole == 0 ? 0 : whole_passed_over_ + 1;
    mailbox_.leave_queue(*utterance);
    admit_one(std::move(utterance));
    admitted = true;
  }
  if (!admitted) return;
  rows_changed();
  note_prefixes();
}

// With all who are heard and one more. While nobody is heard faster than they speak this is a matter of their number, which the rules of
// admission look at.
bool EngineLoop::keeps_up_with(double newcomer) {
  paces_.assign(1, newcomer);
  for_each_let_in([&](const Row& row) {
    if (!row.paused && !row.is_whole() && !row.follows) paces_.push_back(row.pace());
  });
  waiting_.for_each_due(let_in(), [&](const Utterance& utterance) { paces_.push_back(utterance.request.pace); });
  if (std::none_of(paces_.begin(), paces_.end(), [](double pace) { return pace > 1; })) return true;
  std::sort(paces_.begin(), paces_.end(), std::greater<>());
  return costs_.share_needed(paces_) <= max_load();
}

void EngineLoop::note_prefixes() {
  const auto stats = engine_.stats();
  const auto delta = static_cast<std::int64_t>(stats.prefix_cache_bytes) - static_cast<std::int64_t>(engine_stats_.prefix_cache_bytes);
  metrics_.prefixes_looked_up(stats.prefix_cache_hits - engine_stats_.prefix_cache_hits,
                              stats.prefix_cache_misses - engine_stats_.prefix_cache_misses, delta);
  engine_stats_ = stats;
}

void EngineLoop::admit_one(UtterancePtr utterance) {
  worked_ = true;
  const auto slot = acquire_slot(*utterance);
  if (!slot.ok()) return give_final_error(mailbox_, metrics_, *utterance, StopReason::kFailed, slot.error());
  const bool follows = let_in().has(utterance->request.listener);
  Row& row = rows_.emplace_back();
  row.utterance = std::move(utterance);
  row.admission = ++admissions_;
  row.slot = *slot;
  row.follows = follows && !row.is_whole();
  row.playback = PlaybackClock(row.utterance->request.runs_dry_at);
  if (const auto report = row.utterance->take_report()) row.playback.correct(*report);
  row.urgency = pacing_.urgency(row, engine_.prefill_left(row.slot), now_);
  needed_now_ |= row.urgency == Urgency::kNow && row.runnable();
  anyone_listens_ |= !row.is_whole();
  if (row.is_text()) row.text_tokens.reserve(row.utterance->request.sampling.max_steps);
}

Result<engine::SlotId> EngineLoop::acquire_slot(const Utterance& utterance) {
  try {
    return engine_.acquire(utterance.request.prompt, utterance.request.sampling);
  } catch (const std::exception& failure) {
    spdlog::error("request {}: the engine could not take utterance {}: {}", utterance.request.request_id, utterance.id, failure.what());
    return Error{ErrorCode::kEngineFailure, "the engine could not take this utterance", {}, {}};
  }
}

void EngineLoop::plan() {
  work_began_ = clock_.now();
  step_rows_.clear();
  for (const Row& row : rows_) {
    step_rows_.push_back({.slot = row.slot,
                          .prefill_left = engine_.prefill_left(row.slot),
                          .pending = engine_.pending_steps(row.slot),
                          .runnable = row.runnable() && row.stop == StopReason::kNone,
                          .urgency = row.urgency,
                          .sat_out = row.sat_out,
                          .covered = pacing_.covered(row, now_),
                          .in_turn = row.turn_left > 0,
                          .whole = row.is_whole()});
  }
  const auto stepping = std::count_if(step_rows_.begin(), step_rows_.end(), [](const StepRow& row) { return row.runnable; });
  step_limits_.prefill_budget = prefill_budget(least_spare_, costs_.rows_at_once(static_cast<std::uint32_t>(stepping)), costs_);
  plan_step(step_rows_, step_limits_, costs_, step_plan_);
  note_who_takes_part();
}

void EngineLoop::note_who_takes_part() {
  for (const std::uint32_t index : step_plan_.rows) {
    Row& row = rows_[index];
    row.sat_out = 0;
    row.turn_left = (row.turn_left == 0 ? kTurnSteps : row.turn_left) - 1;
  }
  for (const std::uint32_t index : step_plan_.waiting) ++rows_[index].sat_out;
  for (const std::uint32_t index : step_plan_.yielding) ++rows_[index].sat_out;
  if (!step_plan_.yielding.empty()) metrics_.rows_skipped(static_cast<std::uint32_t>(step_plan_.yielding.size()));
}

void EngineLoop::step() {
  if (step_plan_.work.empty()) return;
  worked_ = true;
  outcomes_.assign(step_plan_.work.size(), {});
  const TimePoint started = clock_.now();
  try {
    engine_.step(step_plan_.work, outcomes_);
  } catch (const std::exception& failure) {
    fail_rows(step_plan_.rows, failure.what());
    return;
  }
  const TimePoint ended = clock_.now();
  progress_.succeeded(ended);
  metrics_.step_done(step_plan_.decode_rows, step_plan_.prefill_tokens, ended - started);
  costs_.step_took(step_plan_.decode_rows, step_plan_.prefill_tokens, ended - work_began_);
  work_began_ = ended;
  for (Row& row : rows_) row.steps_led += row.follows || row.paused ? 0 : 1;
  if (++engine_steps_ % kStepsBetweenOutlooks == 0) publish_outlook();
  failed_.clear();
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    record(rows_[step_plan_.rows[i]], outcomes_[i]);
    if (outcomes_[i].stop == StopReason::kFailed) failed_.push_back(step_plan_.rows[i]);
  }
  if (!failed_.empty()) fail_rows(failed_, "the language model's values are not finite");
}

void EngineLoop::record(Row& row, const engine::StepOutcome& outcome) {
  if (!outcome.sampled) return;
  row.stop = outcome.stop;
  if (outcome.stop == StopReason::kEndToken) return;
  ++row.steps;
  if (row.is_text()) row.text_tokens.push_back(outcome.token);
}

void EngineLoop::decode() {
  const TimePoint before = clock_.now();
  decode_rows_.clear();
  // Flags are read again here, so that a cancel that came during the step spares the decoder call.
  for (const Row& row : rows_) decode_rows_.push_back(pacing_.decode_row(row, engine_.pending_steps(row.slot), before));
  const auto rules = pacing_.decode_rules(needed_now_, anyone_listens_, least_spare_, !waiting_.empty() || parking_.returning() > 0);
  plan_decode(decode_rows_, rules, costs_, decode_plan_);
  decode_work_.clear();
  if (decode_plan_.chosen.empty()) return;
  worked_ = true;
  std::uint32_t steps = 0, work = 0, early = 0;
  for (const DecodeChoice& choice : decode_plan_.chosen) {
    const auto& row = decode_rows_[choice.row];
    float* const pcm = pcm_.get() + decode_work_.size() * pcm_stride_;
    decode_work_.push_back({.slot = rows_[choice.row].slot,
                            .steps = choice.steps,
                            .last = row.ended,
                            .lookahead = choice.lookahead,
                            .pcm = std::span(pcm, pcm_stride_),
                            .samples = 0});
    steps += choice.steps;
    work += decode_work(row, choice, rules.exact_lookahead);
    if (!row.ended) early += rules.exact_lookahead - std::min(choice.lookahead, rules.exact_lookahead);
  }
  const TimePoint started = clock_.now();
  try {
    engine_.decode(decode_work_);
  } catch (const std::exception& failure) {
    failed_.clear();
    for (const DecodeChoice& choice : decode_plan_.chosen) failed_.push_back(choice.row);
    fail_rows(failed_, failure.what());
    decode_work_.clear();
    decode_plan_.more_are_short = false;
    return;
  }
  const TimePoint ended = clock_.now();
  progress_.succeeded(ended);
  metrics_.decode_done(static_cast<std::uint32_t>(decode_work_.size()), steps, ended - started);
  decoded_steps_ = steps;
  decoder_work_ = work;
  early_work_ = early;
}

void EngineLoop::deliver() {
  if (decode_work_.empty()) return;
  const TimePoint now = clock_.now();
  for (std::size_t i = 0; i < decode_work_.size(); ++i) {
    Row& row = rows_[decode_plan_.chosen[i].row];
    const auto& work = decode_work_[i];
    row.flushed = work.last;
    if (work.samples == 0) continue;
    row.early = work.lookahead < engine_.info().lookahead_steps;
    ++row.pieces;
    row.samples += work.samples;
    // What an utterance ahead of its turn gives is not heard yet.
    if (row.playback.started() && !row.is_whole() && !row.follows) metrics_.piece_delivered(row.playback.left(now));
    if (row.early) metrics_.low_latency_piece();
    const Duration audio = pacing_.heard_in(work.samples, row.pace());
    row.playback.deliver(now, audio);
    if (!row.follows) lengthen_followers(row, now, audio);
    const bool taken = call_sink(*row.utterance, [&] { row.utterance->sink->on_pcm(work.pcm.first(work.samples), work.last); });
    if (!taken) end(row, StopReason::kCancelled, {ErrorCode::kCancelled, "the receiver failed", {}, {}});
  }
  const TimePoint ended = clock_.now();
  costs_.decode_took(decoder_work_, decoded_steps_, early_work_, ended - work_began_, ended);
  work_began_ = ended;
}

// The listener hears this before what follows it. Their sender will say so too, but a moment later.
void EngineLoop::lengthen_followers(const Row& leader, TimePoint now, Duration audio) {
  const std::uint64_t listener = leader.utterance->request.listener;
  if (listener == 0) return;
  for_each_let_in([&](Row& row) {
    if (row.follows && row.utterance->request.listener == listener) row.playback.deliver(now, audio);
  });
}

void EngineLoop::free_finished() {
  for (Row& row : rows_) {
    if (row.gone || !row.complete()) continue;
    give_up_slot(row);
    Utterance& utterance = *row.utterance;
    mailbox_.forget(utterance.id);
    const auto sink = std::exchange(utterance.sink, nullptr);
    const engine::UtteranceSummary summary{
        .stop = row.stop, .steps = row.steps, .samples = row.samples, .text_tokens = std::move(row.text_tokens)};
    call_sink(utterance, [&] { sink->on_done(summary); });
    metrics_.utterance_finished(metric_name(row.stop));
  }
  remove_gone();
}

void EngineLoop::fail_rows(std::span<const std::uint32_t> rows, std::string_view what) {
  progress_.failed(clock_.now());
  metrics_.engine_failure();
  const std::string id = fmt::format("{:012x}", (error_ids_ + ++errors_) & 0xFFFF'FFFF'FFFFULL);
  spdlog::error("engine failure {}: {} ({} utterances end)", id, what, rows.size());
  for (const std::uint32_t index : rows) {
    Row& row = rows_[index];
    spdlog::error("engine failure {}: request {}, utterance {}", id, row.utterance->request.request_id, row.utterance->id);
    end(row, StopReason::kFailed, {ErrorCode::kEngineFailure, "the engine failed on this utterance (error id " + id + ")", {}, {}});
  }
}

void EngineLoop::end(Row& row, StopReason stop, Error error) {
  assert(!row.gone);
  give_up_slot(row);
  worked_ = true;
  give_final_error(mailbox_, metrics_, *row.utterance, stop, error);
}

void EngineLoop::give_up_slot(Row& row) {
  if (row.parked != nullptr) {
    parking_.give_up(row);
  } else {
    engine_.release(row.slot);
  }
  row.gone = true;
  if (!row.follows) residence_.left_after(row.steps_led, row.utterance->is_newcomer());
}

void EngineLoop::remove_gone() {
  const bool some_left = std::erase_if(rows_, [](const Row& row) { return row.gone; }) > 0;
  if (!parking_.remove_gone() && !some_left) return;
  worked_ = true;
  rows_changed();
}

void EngineLoop::rows_changed() {
  const auto before = active_.exchange(static_cast<std::uint32_t>(rows_.size()), std::memory_order_relaxed);
  metrics_.add_active_rows(static_cast<std::int64_t>(rows_.size()) - before);
  parked_.store(static_cast<std::uint32_t>(parking_.size()), std::memory_order_relaxed);
  for_each_let_in([&](Row& row) { row.follows = row.follows && !is_first_of_listener(row); });
  publish_outlook();
}

// The earliest utterance of a listener leads, the others follow.
bool EngineLoop::is_first_of_listener(const Row& row) const {
  bool first = true;
  for_each_let_in([&](const Row& other) {
    if (other.admission < row.admission && other.utterance->request.listener == row.utterance->request.listener) first = false;
  });
  return first;
}

void EngineLoop::publish_outlook() {
  const std::uint32_t streams = costs_.realtime_streams(max_load(), options_.max_batch);
  realtime_streams_.store(streams, std::memory_order_relaxed);
  // Whoever asks now may wait as long for the slot of somebody who has just paused.
  auto state = admission_state(now_ + options_.park_after);
  auto places = free_places(state, {.max_batch = options_.max_batch, .realtime_streams = streams});
  if (places > 0 && !keeps_up_with(1)) places = 0;
  const std::uint32_t sharing = streams == 0 ? options_.max_batch : streams;
  mailbox_.set_outlook({.free_places = places, .interval = residence_.interval(costs_.round(sharing), sharing)});
}

TimePoint EngineLoop::next_wake() const {
  TimePoint wake_at = admission_at_;
  if (!waiting_.empty() || !rows_.empty() || !parking_.empty()) wake_at = std::min(wake_at, mailbox_.cut_at());
  waiting_.for_each([&](const Utterance& utterance) { wake_at = std::min(wake_at, utterance.request.deadline); });
  for_each_let_in([&](const Row& row) { wake_at = std::min(wake_at, row.utterance->request.deadline); });
  if (waiting_.empty() && parking_.returning() == 0) return wake_at;
  for (const Row& row : rows_) {
    if (row.paused && row.may_leave_at > now_) wake_at = std::min(wake_at, row.may_leave_at);
  }
  return wake_at;
}

}  // namespace tts::scheduling
