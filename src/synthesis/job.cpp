#include "job.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>

#include "tts/base/utf8.h"

#include "prompts.h"

namespace tts::synthesis {

namespace {

// Bounds of the wait before an utterance is offered to a full engine again.
constexpr std::chrono::milliseconds kSoonestResubmission{20};
constexpr std::chrono::milliseconds kLatestResubmission{1000};

// Where the text pauses, the end of the last sentence waits to be faded into the next one until the listener has so little left to hear.
constexpr std::chrono::milliseconds kSettleBefore{250};

constexpr std::chrono::milliseconds kShortestTimer{1};

// Of flushes that wait for the same audio, so many get a mark of their own.
constexpr std::uint32_t kMostFlushMarks = 100;

// Characters that were not spoken, as reported: for a person to read.
constexpr std::size_t kMostDropped = 200;

bool nothing_to_say(const Error& error) { return error.code == ErrorCode::kInvalidArgument && error.param == "text"; }

text::TextOptions text_options(const SynthesisRequest& request, const engine::Voice& voice) {
  auto options = request.text_options;
  options.has_speaker = voice.speaker != nullptr;
  return options;
}

void collect_dropped(std::vector<std::string>& all, std::vector<std::string> more) {
  for (std::string& dropped : more) {
    if (all.size() >= kMostDropped) return;
    if (std::find(all.begin(), all.end(), dropped) == all.end()) all.push_back(std::move(dropped));
  }
}

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
      voice_(&setup.voice),
      listener_(setup.listener),
      running_(std::move(setup.running)),
      on_end_(std::move(setup.on_end)),
      strand_(strand),
      resubmission_(strand),
      timer_(strand),
      started_at_(parts_.clock.now()),
      text_(setup.request.max_buffer_delay),
      text_ended_(!setup.request.incremental) {
  if (text_ended_) ready_.push_back({.text = std::exchange(setup.request.text, {}), .flushes = 0, .closed = true, .mute = false});
  request_ = std::make_shared<const SynthesisRequest>(std::move(setup.request));
}

// The task keeps the job alive. What escapes a task is a defect of ours: the request fails, the server goes on.
template <class Task>
void Job::post(Task task) {
  boost::asio::post(strand_, [self = shared_from_this(), task = std::move(task)]() mutable {
    try {
      task();
    } catch (const std::exception& failure) {
      spdlog::error("request {}: {}", self->request_->request_id, failure.what());
      self->fail({ErrorCode::kInternal, "an internal error ended the request", {}, {}});
    }
    self->end_if_quiet();
  });
}

void Job::start() {
  running_->attach([self = shared_from_this()] { self->post([job = self.get()] { job->on_wake(); }); });
  running_->log().set_drain_callback([running = running_.get()] { running->drained(); });
  post([this] { begin(); });
}

void Job::begin() {
  if (stop_if_cut()) return;
  auto output = AudioOutput::make({.format = request_->format,
                                   .source_rate = parts_.sample_rate,
                                   .speed = request_->speed,
                                   .crossfade_ms = options_.crossfade_ms,
                                   .packet = request_->packet,
                                   .whole = request_->whole,
                                   .max_seconds = options_.max_audio_seconds,
                                   .opus_complexity = options_.opus_complexity,
                                   .adaptive_bitrate = request_->adaptive_bitrate},
                                  running_->log());
  if (!output.ok()) return fail(std::move(output).error());
  output_ = std::move(output).value();
  go_on();
}

void Job::take_input() {
  for (Input& input : running_->take_input()) {
    if (over_) return;
    std::visit([this](auto& one) { take(std::move(one)); }, input);
  }
}

void Job::take(input::Text text) {
  const TimePoint now = parts_.clock.now();
  text_.append(text.text, now);
  add_ready(text_.take_certain(now));
}

void Job::take(input::Flush) { close_ready(1); }

void Job::take(input::End) {
  close_ready(0);
  text_ended_ = true;
}

void Job::take(input::Change change) {
  unprepare();
  auto changed = std::make_shared<SynthesisRequest>(*request_);
  SpeechChange& to = change.change;
  if (change.voice) {
    voice_ = change.voice;
    changed->voice = change.voice->id;
  }
  if (to.language) changed->text_options.language = *std::move(to.language);
  if (to.speed) changed->speed = *to.speed;
  if (to.latency) changed->latency = *to.latency;
  override_with(changed->sampling, to.sampling);
  request_ = std::move(changed);
}

void Job::take(input::RunsDryAt report) {
  if (request_->whole) return;
  const TimePoint now = parts_.clock.now();
  // Before the first sound, only a listener who hears something else has anything to hear.
  if (!playback_.started() && report.when <= now) return;
  const Duration waits = waits_in_log();
  playback_.correct(waits > Duration(0) ? std::max(report.when, now) + waits : report.when);
  tell_listening();
}

void Job::take(input::Bitrate bitrate) { output_->set_bitrate(bitrate.bits_per_second); }

void Job::add_ready(std::string text) {
  if (text.empty()) return;
  if (ready_.empty() || ready_.back().closed) ready_.emplace_back();
  ready_.back().text += text;
  ready_.back().mute = false;
}

// Everything that has come is to be spoken as it is.
void Job::close_ready(std::uint32_t flushes) {
  add_ready(text_.take_all());
  if (ready_.empty()) ready_.emplace_back();
  ReadyText& last = ready_.back();
  last.closed = true;
  last.mute = false;
  last.flushes = std::min(last.flushes + flushes, kMostFlushMarks);
}

// Makes sentences of what is ready; false = there are no more.
bool Job::prepare_next() {
  while (!over_) {
    if (ready_.empty() || ready_.front().mute) {
      std::string due = text_.take_due(parts_.clock.now());
      if (due.empty()) return false;
      add_ready(std::move(due));
    }
    auto prepared = parts_.front_end.prepare(ready_.front().text, text_options(*request_, *voice_));
    if (prepared.ok()) {
      accept(std::move(prepared).value());
      return true;
    }
    if (!request_->incremental || !nothing_to_say(prepared.error())) {
      fail(std::move(prepared).error());
    } else if (ready_.front().closed) {
      give_up_ready();
    } else {
      ready_.front().mute = true;  // it goes with what comes next
    }
  }
  return false;
}

void Job::accept(text::PreparedText prepared) {
  prepared_ = std::move(ready_.front());
  ready_.pop_front();
  prepared_begin_ = ready_begin_;
  prepared_first_ = static_cast<std::uint32_t>(sentences_.size());
  const std::string_view text = prepared_.text;
  std::size_t at = 0;  // in bytes; ready_begin_ is the same place in code points
  const auto go_to = [&](std::size_t byte) {
    ready_begin_ += count_code_points(text.substr(at, byte - at));
    at = byte;
    return ready_begin_;
  };
  for (auto& utterance : prepared.utterances) {
    Sentence& sentence = sentences_.emplace_back();
    sentence.begin = go_to(utterance.source.begin);
    sentence.end = go_to(utterance.source.end);
    sentence.prepared = std::move(utterance);
    sentence.refine = request_->refine.has_value();
  }
  go_to(text.size());
  if (prepared_.flushes > 0) flushes_.push_back({static_cast<std::uint32_t>(sentences_.size()), ready_begin_, prepared_.flushes});
  running_->update([&](SynthesisReport& report) {
    report.sentences = static_cast<std::uint32_t>(sentences_.size());
    collect_dropped(report.dropped, std::move(prepared.dropped));
  });
}

// There is nothing to say in it, and nothing will be added to it.
void Job::give_up_ready() {
  const ReadyText silent = std::move(ready_.front());
  ready_.pop_front();
  ready_begin_ += count_code_points(silent.text);
  running_->text_submitted(ready_begin_);
  if (silent.flushes > 0) flushes_.push_back({static_cast<std::uint32_t>(sentences_.size()), ready_begin_, silent.flushes});
}

// Sentences that were not submitted become text again.
void Job::unprepare() {
  if (submitted_ == sentences_.size()) return;
  const bool all = submitted_ == prepared_first_;
  const std::size_t from = all ? 0 : sentences_[submitted_ - 1].prepared.source.end;
  ready_begin_ = all ? prepared_begin_ : sentences_[submitted_ - 1].end;
  prepared_.text.erase(0, from);
  if (prepared_.flushes > 0) flushes_.pop_back();  // it came with these sentences, and nothing was prepared after them
  if (prepared_.closed || ready_.empty()) {
    ready_.push_front(std::move(prepared_));
  } else {
    ready_.front().text.insert(0, prepared_.text);
    ready_.front().mute = false;
  }
  prepared_ = {};
  sentences_.resize(submitted_);
  running_->update([&](SynthesisReport& report) { report.sentences = submitted_; });
}

void Job::go_on() {
  if (over_) return;
  submit_due();
  mark_flushed();
  if (over_) return;
  const bool all_spoken = current_ == sentences_.size() && ready_.empty();
  if (all_spoken && text_ended_) return complete();
  note_waiting();
  set_timer();
}

void Job::submit_due() {
  while (!over_ && !log_full_ && !resubmitting_) {
    const std::uint32_t ahead = submitted_ - current_;
    if (ahead > 0 && (!sounding_ || ahead > options_.sentences_ahead)) return;
    if (submitted_ == sentences_.size() && !prepare_next()) return;
    if (std::exchange(waiting_, false)) {
      note_rest();
      // Whoever ran dry while there was nothing to say is owed no sound; it begins anew.
      if (playback_.left(parts_.clock.now()) <= Duration(0)) playback_ = PlaybackClock();
    }
    Sentence& next = sentences_[submitted_];
    next.request = request_;
    next.voice = voice_;
    running_->text_submitted(submitted_ + 1 == sentences_.size() ? ready_begin_ : next.end);
    submit(submitted_++);
  }
}

void Job::submit(std::uint32_t index) {
  if (parts_.clock.now() >= request_->deadline) {
    return fail({ErrorCode::kDeadlineExceeded, "the request's deadline passed before its audio was complete", {}, {}});
  }
  auto request = utterance_request(index);
  if (!request.ok()) return fail(std::move(request).error());
  request->listener = listener_;
  request->runs_dry_at = runs_dry_at(index);
  const std::uint64_t max_backlog = std::uint64_t{options_.max_backlog_seconds} * parts_.sample_rate;
  const std::chrono::duration<double> per_sample(1.0 / (parts_.sample_rate * sentences_[index].request->speed));
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
  go_on();
}

Result<engine::UtteranceRequest> Job::utterance_request(std::uint32_t index) const {
  const Sentence& sentence = sentences_[index];
  const SynthesisRequest& request = *sentence.request;
  const std::uint64_t seed = running_->seed();
  if (sentence.refine) {
    auto tokens = parts_.front_end.prepare_refine(sentence.prepared.spoken, request.refine->prompt);
    if (!tokens.ok()) return std::move(tokens).error();
    return refinement(request, parts_.front_end.refine_end_token(), std::move(tokens).value(), refine_seed(seed, index));
  }
  return speech(request, *sentence.voice, parts_.sampling, parts_.front_end.speaker_token(), sentence.prepared, sentence_seed(seed, index));
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
  go_on();
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
  take_input();
  if (over_) return;
  if (running_->take_drained() && std::exchange(log_full_, false)) {
    note_rest();
    note_listening();
    tell_listening();
    running_->resume_all(PauseReason::kSlowClient);
  }
  go_on();
}

void Job::on_time() {
  timer_at_ = TimePoint::max();
  if (!stop_if_cut()) go_on();
}

void Job::retire(std::uint32_t index) {
  const auto control = std::exchange(sentences_[index].control, nullptr);
  control->await_end();
  running_->remove(control);
  --in_flight_;
}

// A refinement that left nothing to say leaves the sentence as it was.
void Job::refined(std::uint32_t index, const std::vector<std::int32_t>& tokens) {
  auto prepared = parts_.front_end.prepare_refined(tokens, text_options(*sentences_[index].request, *sentences_[index].voice));
  if (prepared.ok() && !tokens.empty()) {
    sentences_[index].prepared.tokens = std::move(prepared->tokens);
    sentences_[index].prepared.shared_prefix = prepared->shared_prefix;
  } else {
    spdlog::warn("request {}: a refinement left nothing to say and was put aside", request_->request_id);
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
  Sentence& sentence = sentences_[current_];
  if (!samples.empty() && !std::exchange(sentence.begun, true)) {
    note_output(output_->set_speed(sentence.request->speed));
    if (over_) return;
    if (request_->incremental) {
      output_->mark({.kind = resume::Mark::Kind::kSentence,
                     .index = current_,
                     .begin = sentence.begin,
                     .end = sentence.end,
                     .first_sample = output_->samples()});
    }
  }
  note_output(output_->push(samples, more_follows));
}

// Goes on to the next sentence while the current one is complete.
void Job::advance() {
  while (!over_ && current_ < sentences_.size() && sentences_[current_].done) {
    Sentence& spoken = sentences_[current_];
    if (spoken.error) return fail(*std::move(spoken.error));
    note_output(output_->end_utterance());
    if (over_) return;
    sounding_ = false;
    spoken.prepared.tokens = {};
    spoken.prepared.spoken = {};
    ++current_;
    mark_flushed();
    if (over_ || current_ == sentences_.size()) break;
    Sentence& next = sentences_[current_];
    if (const auto held = std::exchange(next.held, {}); !held.empty()) feed(held, !next.all_came && !next.done);
    if (next.control) next.control->resume(PauseReason::kAhead);
  }
  go_on();
}

// Between sentences.
void Job::mark_flushed() {
  if (over_) return;
  std::vector<resume::Mark> marks;
  for (; !flushes_.empty() && flushes_.front().sentences <= current_; flushes_.pop_front()) {
    const resume::Mark mark{.kind = resume::Mark::Kind::kFlushed, .index = 0, .begin = 0, .end = flushes_.front().end, .first_sample = 0};
    marks.insert(marks.end(), flushes_.front().marks, mark);
  }
  if (!marks.empty()) note_output(output_->settle(std::move(marks)));
}

void Job::note_waiting() {
  waiting_ = !text_ended_ && current_ == sentences_.size() && (ready_.empty() || ready_.front().mute);
  note_rest();
  if (waiting_ && !output_->settled() && parts_.clock.now() >= settle_at()) note_output(output_->settle());
}

// Time in which nobody could have made sound is no work.
void Job::note_rest() {
  const bool rests = log_full_ || waiting_;
  if (rests == std::exchange(resting_, rests)) return;
  const TimePoint now = parts_.clock.now();
  if (rests) {
    rested_since_ = now;
  } else {
    rested_for_ += now - rested_since_;
  }
}

TimePoint Job::settle_at() const { return playback_.started() ? playback_.runs_dry_at() - kSettleBefore : TimePoint{}; }

// What is due already waits for something else than time.
void Job::set_timer() {
  TimePoint next = TimePoint::max();
  const TimePoint now = parts_.clock.now();
  const auto consider = [&](TimePoint when) {
    if (when > now) next = std::min(next, when);
  };
  if (!over_) {
    if (ready_.empty() || ready_.front().mute) consider(text_.due_at());
    if (waiting_ && !output_->settled()) consider(settle_at());
  }
  if (next == timer_at_) return;
  timer_at_ = next;
  if (next == TimePoint::max()) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(std::max<Duration>(next - now, kShortestTimer));
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    if (!cancelled) self->post([job = self.get()] { job->on_time(); });
  });
}

void Job::complete() {
  note_output(output_->finish());
  if (over_) return;
  over_ = true;
  timer_.cancel();
  const TimePoint now = parts_.clock.now();
  const auto total = now - started_at_;
  running_->update([&](SynthesisReport& report) { report.total = total; });
  if (const double audio = static_cast<double>(output_->samples()) / request_->format.sample_rate; audio > 0) {
    const Duration rested = rested_for_ + (resting_ ? now - rested_since_ : Duration(0));
    const std::chrono::duration<double> working = total - rested;
    parts_.metrics.synthesis_finished(audio, working.count() / audio);
  }
  running_->log().finish();
}

void Job::note_output(const Status& status) {
  if (!status.ok()) return fail(status.error());
  if (stop_if_closed()) return;
  if (output_->begun() && !std::exchange(first_noted_, true)) {
    const auto since_text = parts_.clock.now() - started_at_ - rested_for_;
    parts_.metrics.first_packet(since_text);
    running_->update([&](SynthesisReport& report) { report.first_packet = since_text; });
  }
  running_->update([&](SynthesisReport& report) { report.samples = output_->samples(); });
  running_->account_log();
  note_listening();
  tell_listening();
  if (output_->log_is_full() && !std::exchange(log_full_, true)) {
    note_rest();
    running_->pause_all(PauseReason::kSlowClient);
  }
}

void Job::note_listening() {
  if (request_->whole) return;
  const TimePoint now = parts_.clock.now();
  const std::uint64_t audible = output_->audible();
  if (audible > delivered_) playback_.deliver(now, heard_as_output(audible - std::exchange(delivered_, audible)));
  if (const Duration waits = waits_in_log(); waits > Duration(0) && playback_.started()) playback_.at_least_until(now + waits);
}

Duration Job::waits_in_log() const {
  const auto oldest = running_->log().first_held_sample();
  if (!oldest) return Duration(0);
  const std::uint64_t audible = output_->audible();
  return heard_as_output(audible - std::min(audible, *oldest));
}

void Job::tell_listening() {
  if (!playback_.started()) return;
  for (std::uint32_t index = current_; index < submitted_; ++index) {
    if (const auto& control = sentences_[index].control) control->tell_runs_dry_at(runs_dry_at(index));
  }
}

TimePoint Job::runs_dry_at(std::uint32_t index) const {
  if (!playback_.started()) return {};
  TimePoint dry = playback_.runs_dry_at();
  for (std::uint32_t i = current_; i <= index; ++i) dry += heard_as(sentences_[i]);
  return dry;
}

Duration Job::heard_as(const Sentence& sentence) const {
  const auto samples = static_cast<double>(sentence.held.size());
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(samples / (parts_.sample_rate * sentence.request->speed)));
}

Duration Job::heard_as_output(std::uint64_t samples) const {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(static_cast<double>(samples) / request_->format.sample_rate));
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
  timer_.cancel();
  for (auto& sentence : sentences_) sentence.held = {};
  const bool ours = error.code == ErrorCode::kEngineFailure || error.code == ErrorCode::kInternal;
  if (ours) error.message += " (request " + request_->request_id + ")";
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
  if (output_ && output_->begun()) return "streaming";
  return heard_ ? "before_first_packet" : "queued";
}

}  // namespace tts::synthesis
