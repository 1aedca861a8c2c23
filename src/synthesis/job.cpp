#include "job.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>

#include "prompts.h"

namespace tts::synthesis {

namespace {

// Bounds of the wait before an utterance is offered to a full engine again.
constexpr std::chrono::milliseconds kSoonestResubmission{20};
constexpr std::chrono::milliseconds kLatestResubmission{1000};

}  // namespace

// Copies what the engine's thread brings to the job's strand. Gives the job up with the final call, because the engine may keep the
// sink a little longer than the job's world stands.
class Job::Sink final : public engine::UtteranceSink {
 public:
  Sink(std::shared_ptr<Job> job, std::uint32_t index, std::shared_ptr<UtteranceControl> control)
      : job_(std::move(job)), index_(index), control_(std::move(control)) {}

  void on_pcm(std::span<const float> samples, bool last) override {
    control_->add_backlog(samples.size());
    job_->post([job = job_.get(), index = index_, last, control = control_,
                pcm = std::vector<float>(samples.begin(), samples.end())]() mutable { job->on_pcm(index, std::move(pcm), last, *control); });
  }

  void on_done(const engine::UtteranceSummary& summary) override {
    control_->end([&] {
      const auto job = std::exchange(job_, nullptr);
      job->post([job = job.get(), index = index_, copy = summary]() mutable { job->on_done(index, std::move(copy)); });
    });
  }

  void on_error(const Error& error) override {
    control_->end([&] {
      const auto job = std::exchange(job_, nullptr);
      job->post([job = job.get(), index = index_, copy = error]() mutable { job->on_error(index, std::move(copy)); });
    });
  }

 private:
  std::shared_ptr<Job> job_;
  const std::uint32_t index_;
  const std::shared_ptr<UtteranceControl> control_;
};

Job::Job(Setup setup, const Strand& strand)
    : parts_(setup.parts),
      options_(setup.options),
      voice_(setup.voice),
      request_(std::move(setup.request)),
      listener_(setup.listener),
      running_(std::move(setup.running)),
      on_end_(std::move(setup.on_end)),
      strand_(strand),
      resubmission_(strand),
      started_at_(parts_.clock.now()) {}

// The task keeps the job alive. What escapes a task is a defect of ours: the request fails, the server goes on.
template <class Task>
void Job::post(Task task) {
  boost::asio::post(strand_, [self = shared_from_this(), task = std::move(task)]() mutable {
    try {
      task();
    } catch (const std::exception& failure) {
      spdlog::error("request {}: {}", self->request_.request_id, failure.what());
      self->fail({ErrorCode::kInternal, "an internal error ended the request", {}, {}});
    }
    self->end_if_quiet();
  });
}

void Job::start() {
  running_->attach([self = shared_from_this()] { self->post([job = self.get()] { job->on_wake(); }); });
  running_->log().set_drain_callback([running = running_.get()] { running->wake(); });
  post([this] { prepare(); });
}

void Job::prepare() {
  if (stop_if_cut()) return;
  auto prepared = parts_.front_end.prepare(request_.text, text_options());
  if (!prepared.ok()) return fail(std::move(prepared).error());
  auto output = AudioOutput::make({.format = request_.format,
                                   .source_rate = parts_.sample_rate,
                                   .speed = request_.speed,
                                   .crossfade_ms = options_.crossfade_ms,
                                   .packet = request_.packet,
                                   .whole = request_.whole,
                                   .max_seconds = options_.max_audio_seconds,
                                   .opus_complexity = options_.opus_complexity},
                                  running_->log());
  if (!output.ok()) return fail(std::move(output).error());
  output_ = std::move(output).value();
  for (auto& utterance : prepared->utterances) {
    Sentence& sentence = sentences_.emplace_back();
    sentence.prepared = std::move(utterance);
    sentence.refine = request_.refine.has_value();
  }
  running_->update([&](SynthesisReport& report) {
    report.sentences = static_cast<std::uint32_t>(sentences_.size());
    report.dropped = std::move(prepared->dropped);
  });
  submit_due();
}

void Job::submit_due() {
  while (!over_ && !log_full_ && !resubmitting_ && submitted_ < sentences_.size()) {
    const std::uint32_t ahead = submitted_ - current_;
    if (ahead > 0 && (!sounding_ || ahead > options_.sentences_ahead)) return;
    submit(submitted_++);
  }
}

void Job::submit(std::uint32_t index) {
  if (parts_.clock.now() >= request_.deadline) {
    return fail({ErrorCode::kDeadlineExceeded, "the request's deadline passed before its audio was complete", {}, {}});
  }
  auto request = utterance_request(index);
  if (!request.ok()) return fail(std::move(request).error());
  request->listener = listener_;
  request->runs_dry_at = runs_dry_at(index);
  const std::uint64_t max_backlog = std::uint64_t{options_.max_backlog_seconds} * parts_.sample_rate;
  const std::chrono::duration<double> per_sample(1.0 / (parts_.sample_rate * request_.speed));
  const auto control = std::make_shared<UtteranceControl>(parts_.engine, max_backlog, per_sample);
  if (log_full_) control->pause(PauseReason::kSlowClient);
  if (!running_->add(control)) return;  // cut: on_wake() is under way
  auto id = parts_.engine.submit(std::move(request).value(), std::make_shared<Sink>(shared_from_this(), index, control));
  if (id.ok()) {
    control->attach(*id);
    sentences_[index].control = control;
    ++in_flight_;
    accepted_ = true;
    return;
  }
  running_->remove(control);
  // A request that has begun is not given up for a full queue; one that has not is better refused at once.
  if (id.error().code == ErrorCode::kQueueFull && accepted_) return submit_later(index, id.error().retry_after);
  fail(std::move(id).error());
}

void Job::submit_later(std::uint32_t index, std::chrono::milliseconds wait) {
  sentences_[index].waiting = true;
  if (resubmitting_) return;
  resubmitting_ = true;
  resubmission_.expires_after(std::clamp(wait, kSoonestResubmission, kLatestResubmission));
  resubmission_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    if (!cancelled) self->post([job = self.get()] { job->submit_waiting(); });
  });
}

void Job::submit_waiting() {
  resubmitting_ = false;
  for (std::uint32_t index = current_; index < submitted_ && !stop_if_cut(); ++index) {
    if (std::exchange(sentences_[index].waiting, false)) submit(index);
  }
  submit_due();
}

Result<engine::UtteranceRequest> Job::utterance_request(std::uint32_t index) const {
  const Sentence& sentence = sentences_[index];
  const std::uint64_t seed = running_->seed();
  if (sentence.refine) {
    auto tokens = parts_.front_end.prepare_refine(sentence.prepared.spoken, request_.refine->prompt);
    if (!tokens.ok()) return std::move(tokens).error();
    return refinement(request_, parts_.front_end.refine_end_token(), std::move(tokens).value(), refine_seed(seed, index));
  }
  return speech(request_, voice_, parts_.sampling, parts_.front_end.speaker_token(), sentence.prepared, sentence_seed(seed, index));
}

void Job::on_pcm(std::uint32_t index, std::vector<float> samples, bool last, UtteranceControl& control) {
  control.take_backlog(samples.size());
  if (stop_if_cut()) return;
  assert(index >= current_);
  heard_ = true;
  sentences_[index].all_came = last;
  if (index == current_) {
    feed(samples, !last);
  } else {
    hold(sentences_[index], samples);
  }
  submit_due();
}

void Job::on_done(std::uint32_t index, engine::UtteranceSummary summary) {
  retire(index);
  if (stop_if_cut()) return;
  Sentence& sentence = sentences_[index];
  running_->update([&](SynthesisReport& report) { report.steps += summary.steps; });
  if (std::exchange(sentence.refine, false)) return refined(index, summary.text_tokens);
  sentence.done = true;
  advance();
}

void Job::on_error(std::uint32_t index, Error error) {
  retire(index);
  if (stop_if_cut()) return;
  sentences_[index].done = true;
  sentences_[index].error = std::move(error);
  advance();
}

void Job::on_wake() {
  if (stop_if_cut()) return;
  if (stop_if_closed()) return;
  running_->account_log();
  if (!std::exchange(log_full_, false)) return;
  paused_for_ += parts_.clock.now() - paused_at_;
  note_listening();
  tell_listening();
  running_->resume_all(PauseReason::kSlowClient);
  submit_due();
}

void Job::retire(std::uint32_t index) {
  const auto control = std::exchange(sentences_[index].control, nullptr);
  control->await_end();
  running_->remove(control);
  --in_flight_;
}

// A refinement that left nothing to say leaves the sentence as it was.
void Job::refined(std::uint32_t index, const std::vector<std::int32_t>& tokens) {
  auto prepared = parts_.front_end.prepare_refined(tokens, text_options());
  if (prepared.ok() && !tokens.empty()) {
    sentences_[index].prepared.tokens = std::move(prepared->tokens);
    sentences_[index].prepared.shared_prefix = prepared->shared_prefix;
  } else {
    spdlog::warn("request {}: a refinement left nothing to say and was put aside", request_.request_id);
  }
  submit(index);
}

void Job::hold(Sentence& sentence, const std::vector<float>& samples) {
  sentence.held.insert(sentence.held.end(), samples.begin(), samples.end());
  const std::uint64_t most = std::uint64_t{options_.max_ahead_seconds} * parts_.sample_rate;
  if (sentence.held.size() >= most) sentence.control->pause(PauseReason::kAhead);
}

// The engine's last piece of an utterance holds its whole lookahead, which is longer than a cross-fade.
void Job::feed(const std::vector<float>& samples, bool more_follows) {
  sounding_ = true;
  note_output(output_->push(samples, more_follows));
}

// Goes on to the next sentence while the current one is complete.
void Job::advance() {
  while (!over_ && current_ < sentences_.size() && sentences_[current_].done) {
    if (sentences_[current_].error) return fail(*std::move(sentences_[current_].error));
    note_output(output_->end_utterance());
    sounding_ = false;
    if (++current_ == sentences_.size() || over_) break;
    Sentence& next = sentences_[current_];
    if (const auto held = std::exchange(next.held, {}); !held.empty()) feed(held, !next.all_came && !next.done);
    if (next.control) next.control->resume(PauseReason::kAhead);
  }
  if (over_) return;
  if (current_ == sentences_.size()) return complete();
  submit_due();
}

void Job::complete() {
  note_output(output_->finish());
  if (over_) return;
  const auto total = parts_.clock.now() - started_at_;
  running_->update([&](SynthesisReport& report) { report.total = total; });
  if (const double audio = static_cast<double>(output_->samples()) / request_.format.sample_rate; audio > 0) {
    const std::chrono::duration<double> working = total - paused_for_;
    parts_.metrics.synthesis_finished(audio, working.count() / audio);
  }
  over_ = true;
  running_->log().finish();
}

void Job::note_output(const Status& status) {
  if (!status.ok()) return fail(status.error());
  if (stop_if_closed()) return;
  const auto& log = running_->log();
  const bool first_is_out = log.last_seq() > 0;
  const auto since_start = parts_.clock.now() - started_at_;
  if (first_is_out && !std::exchange(first_noted_, true)) {
    parts_.metrics.first_packet(since_start);
    running_->update([&](SynthesisReport& report) { report.first_packet = since_start; });
  }
  running_->update([&](SynthesisReport& report) { report.samples = output_->samples(); });
  running_->account_log();
  note_listening();
  tell_listening();
  if (output_->log_is_full() && !std::exchange(log_full_, true)) {
    paused_at_ = parts_.clock.now();
    running_->pause_all(PauseReason::kSlowClient);
  }
}

void Job::note_listening() {
  if (request_.whole) return;
  const TimePoint now = parts_.clock.now();
  const auto heard_as_output = [&](std::uint64_t samples) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(static_cast<double>(samples) / request_.format.sample_rate));
  };
  const std::uint64_t audible = output_->audible();
  if (audible > delivered_) playback_.deliver(now, heard_as_output(audible - std::exchange(delivered_, audible)));
  // What waits in the log for the connection has certainly not been heard.
  if (const auto oldest = running_->log().first_held_sample(); oldest && playback_.started()) {
    playback_.at_least_until(now + heard_as_output(audible - std::min(audible, *oldest)));
  }
}

void Job::tell_listening() {
  if (!playback_.started()) return;
  for (std::uint32_t index = current_; index < submitted_; ++index) {
    if (const auto& control = sentences_[index].control) control->tell_runs_dry_at(runs_dry_at(index));
  }
}

TimePoint Job::runs_dry_at(std::uint32_t index) const {
  if (!playback_.started()) return {};
  std::uint64_t held = 0;
  for (std::uint32_t i = current_; i <= index; ++i) held += sentences_[i].held.size();
  return playback_.runs_dry_at() + heard_as(held);
}

Duration Job::heard_as(std::uint64_t samples) const {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(samples) / (parts_.sample_rate * request_.speed)));
}

bool Job::stop_if_cut() {
  if (over_) return true;
  auto reason = running_->cut_reason();
  if (!reason) return false;
  fail(*std::move(reason));
  return true;
}

bool Job::stop_if_closed() {
  if (!running_->log().closed()) return false;
  fail({ErrorCode::kCancelled, "the client has gone", {}, {}});
  return true;
}

void Job::fail(Error error) {
  if (over_) return;
  over_ = true;
  running_->cancel_all();
  resubmission_.cancel();
  for (auto& sentence : sentences_) sentence.held = {};
  const bool ours = error.code == ErrorCode::kEngineFailure || error.code == ErrorCode::kInternal;
  if (ours) error.message += " (request " + request_.request_id + ")";
  if (error.code == ErrorCode::kCancelled) parts_.metrics.cancelled(stage());
  if (error.code == ErrorCode::kQueueFull) parts_.metrics.rejected("queue_full");
  running_->update([&](SynthesisReport& report) { report.total = parts_.clock.now() - started_at_; });
  running_->log().fail(std::move(error));
}

void Job::end_if_quiet() {
  if (!over_ || in_flight_ > 0 || !on_end_) return;
  running_->detach();
  std::exchange(on_end_, nullptr)();
}

std::string_view Job::stage() const {
  if (running_->log().last_seq() > 0) return "streaming";
  return heard_ ? "before_first_packet" : "queued";
}

text::TextOptions Job::text_options() const {
  auto options = request_.text_options;
  options.has_speaker = voice_.speaker != nullptr;
  return options;
}

}  // namespace tts::synthesis
