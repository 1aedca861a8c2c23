#include "engine_loop.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <random>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "admission.h"

namespace tts::scheduling {
namespace {

using engine::StopReason;

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

bool EngineLoop::Row::runnable() const noexcept {
  return !gone && !utterance->cancelled.load(std::memory_order_relaxed) && !utterance->paused.load(std::memory_order_relaxed);
}

bool EngineLoop::Row::complete() const noexcept { return stop != StopReason::kNone && (flushed || is_text() || steps == 0); }

EngineLoop::EngineLoop(engine::StepEngine& engine, const SchedulerOptions& options, const Clock& clock, observability::Metrics& metrics,
                       Mailbox& mailbox, Progress& progress)
    : engine_(engine),
      options_(options),
      clock_(clock),
      metrics_(metrics),
      mailbox_(mailbox),
      progress_(progress),
      ramp_(options.chunk_ramp, options.chunk_steps, engine.info().lookahead_steps, engine.info().max_pending_steps),
      step_limits_{.max_rows = engine.info().max_rows_per_step,
                   .max_pending = engine.info().max_pending_steps,
                   .prefill_chunk = options.prefill_chunk},
      error_ids_(random_word()),
      pcm_stride_(engine.max_decode_samples(engine.info().max_pending_steps, true)),
      pcm_(std::make_unique_for_overwrite<float[]>(pcm_stride_ * options.max_batch)) {
  rows_.reserve(options.max_batch);
  step_rows_.reserve(options.max_batch);
  step_plan_.reserve(options.max_batch);
  outcomes_.reserve(options.max_batch);
  decode_rows_.reserve(options.max_batch);
  decoding_.reserve(options.max_batch);
  decode_work_.reserve(options.max_batch);
}

EngineLoop::Turn EngineLoop::turn() {
  const bool stopping = mailbox_.stopping();  // before taking work: what was posted earlier is then seen below
  worked_ = false;
  now_ = clock_.now();
  take_new_work();
  drop_cancelled_and_expired();
  admit();
  plan();
  step();
  decode();
  deliver();
  free_finished();
  const bool finished = stopping && queue_.empty() && rows_.empty();
  return {.worked = worked_, .finished = finished, .wake_at = worked_ || finished ? now_ : next_wake()};
}

void EngineLoop::take_new_work() {
  mailbox_.take(arrivals_);
  std::move(arrivals_.begin(), arrivals_.end(), std::back_inserter(queue_));
  arrivals_.clear();
}

void EngineLoop::drop_cancelled_and_expired() {
  const bool cut = now_ >= mailbox_.cut_at();
  const auto dropped = std::erase_if(queue_, [&](const UtterancePtr& utterance) {
    const Ending ending = early_ending(*utterance, now_, cut);
    if (ending.stop == StopReason::kNone) return false;
    give_final_error(mailbox_, metrics_, *utterance, ending.stop, ending.error);
    return true;
  });
  if (dropped > 0) mailbox_.leave_queue(static_cast<std::uint32_t>(dropped));
  for (Row& row : rows_) {
    if (Ending ending = early_ending(*row.utterance, now_, cut); ending.stop != StopReason::kNone) {
      end(row, ending.stop, std::move(ending.error));
    }
  }
  remove_gone();
}

void EngineLoop::admit() {
  admission_at_ = TimePoint::max();
  if (queue_.empty()) return;
  // Nobody joins a stopping engine later, so there is no company to wait for.
  const auto window = mailbox_.stopping() ? std::chrono::milliseconds(0) : options_.batch_window;
  const auto decision = decide_admission({.waiting = static_cast<std::uint32_t>(queue_.size()),
                                          .active = static_cast<std::uint32_t>(rows_.size()),
                                          .oldest_submitted = queue_.front()->submitted_at,
                                          .now = now_},
                                         {.max_batch = options_.max_batch, .batch_window = window});
  admission_at_ = decision.wait_until;
  if (decision.admit == 0) return;
  if (rows_.empty()) retry_advice_.busy_since(now_);
  for (std::uint32_t i = 0; i < decision.admit; ++i) {
    admit_one(std::move(queue_.front()));
    queue_.pop_front();
  }
  mailbox_.leave_queue(decision.admit);
  rows_changed();
}

void EngineLoop::admit_one(UtterancePtr utterance) {
  worked_ = true;
  const auto& request = utterance->request;
  Error refusal;
  try {
    auto slot = engine_.acquire(request.prompt, request.sampling);
    if (slot.ok()) {
      Row& row = rows_.emplace_back();
      row.utterance = std::move(utterance);
      row.slot = *slot;
      if (row.is_text()) row.text_tokens.reserve(row.utterance->request.sampling.max_steps);
      return;
    }
    refusal = slot.error();
  } catch (const std::exception& failure) {
    spdlog::error("request {}: the engine could not take utterance {}: {}", request.request_id, utterance->id, failure.what());
    refusal = {ErrorCode::kEngineFailure, "the engine could not take this utterance", {}, {}};
  }
  give_final_error(mailbox_, metrics_, *utterance, StopReason::kFailed, refusal);
}

void EngineLoop::plan() {
  step_rows_.clear();
  for (const Row& row : rows_) {
    step_rows_.push_back({.slot = row.slot,
                          .prefill_left = engine_.prefill_left(row.slot),
                          .pending = engine_.pending_steps(row.slot),
                          .runnable = row.runnable() && row.stop == StopReason::kNone});
  }
  plan_step(step_rows_, step_limits_, step_plan_);
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
  for (std::size_t i = 0; i < outcomes_.size(); ++i) record(rows_[step_plan_.rows[i]], outcomes_[i]);
}

void EngineLoop::record(Row& row, const engine::StepOutcome& outcome) {
  if (!outcome.sampled) return;
  row.stop = outcome.stop;
  if (outcome.stop == StopReason::kEndToken) return;
  ++row.steps;
  if (row.is_text()) row.text_tokens.push_back(outcome.token);
}

void EngineLoop::decode() {
  decode_rows_.clear();
  for (const Row& row : rows_) {
    // Flags are read again here, so that a cancel that came during the step spares the decoder call.
    decode_rows_.push_back({.pending = engine_.pending_steps(row.slot),
                            .wanted = ramp_.steps(row.deliveries),
                            .steady = ramp_.steady(row.deliveries),
                            .ended = row.stop != StopReason::kNone,
                            .runnable = row.runnable() && !row.is_text() && !row.complete()});
  }
  plan_decode(decode_rows_, step_limits_.max_pending, decoding_);
  decode_work_.clear();
  if (decoding_.empty()) return;
  worked_ = true;
  std::uint32_t steps = 0;
  for (const std::uint32_t index : decoding_) {
    const auto& row = decode_rows_[index];
    float* const pcm = pcm_.get() + decode_work_.size() * pcm_stride_;
    decode_work_.push_back(
        {.slot = rows_[index].slot, .steps = row.pending, .last = row.ended, .pcm = std::span(pcm, pcm_stride_), .samples = 0});
    steps += row.pending;
  }
  const TimePoint started = clock_.now();
  try {
    engine_.decode(decode_work_);
  } catch (const std::exception& failure) {
    fail_rows(decoding_, failure.what());
    decode_work_.clear();
    decoding_.clear();
    return;
  }
  const TimePoint ended = clock_.now();
  progress_.succeeded(ended);
  metrics_.decode_done(static_cast<std::uint32_t>(decode_work_.size()), steps, ended - started);
}

void EngineLoop::deliver() {
  for (std::size_t i = 0; i < decode_work_.size(); ++i) {
    Row& row = rows_[decoding_[i]];
    const auto& work = decode_work_[i];
    ++row.deliveries;
    row.flushed = work.last;
    row.samples += work.samples;
    if (work.samples == 0) continue;
    const bool taken = call_sink(*row.utterance, [&] { row.utterance->sink->on_pcm(work.pcm.first(work.samples), work.last); });
    if (!taken) end(row, StopReason::kCancelled, {ErrorCode::kCancelled, "the receiver failed", {}, {}});
  }
}

void EngineLoop::free_finished() {
  for (Row& row : rows_) {
    if (row.gone || !row.complete()) continue;
    engine_.release(row.slot);
    row.gone = true;
    Utterance& utterance = *row.utterance;
    mailbox_.forget(utterance.id);
    const auto sink = std::exchange(utterance.sink, nullptr);
    const engine::UtteranceSummary summary{
        .stop = row.stop, .steps = row.steps, .samples = row.samples, .text_tokens = std::move(row.text_tokens)};
    call_sink(utterance, [&] { sink->on_done(summary); });
    metrics_.utterance_finished(metric_name(row.stop));
    retry_advice_.finished(clock_.now());
    mailbox_.advise_retry_after(retry_advice_.estimate(static_cast<std::uint32_t>(queue_.size())));
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
  engine_.release(row.slot);
  row.gone = true;
  worked_ = true;
  give_final_error(mailbox_, metrics_, *row.utterance, stop, error);
}

void EngineLoop::remove_gone() {
  if (std::erase_if(rows_, [](const Row& row) { return row.gone; }) > 0) {
    worked_ = true;
    rows_changed();
  }
}

void EngineLoop::rows_changed() {
  const auto before = active_.exchange(static_cast<std::uint32_t>(rows_.size()), std::memory_order_relaxed);
  metrics_.add_active_rows(static_cast<std::int64_t>(rows_.size()) - before);
}

TimePoint EngineLoop::next_wake() const {
  TimePoint wake_at = admission_at_;
  if (!queue_.empty() || !rows_.empty()) wake_at = std::min(wake_at, mailbox_.cut_at());
  for (const auto& utterance : queue_) wake_at = std::min(wake_at, utterance->request.deadline);
  for (const auto& row : rows_) wake_at = std::min(wake_at, row.utterance->request.deadline);
  return wake_at;
}

}  // namespace tts::scheduling
