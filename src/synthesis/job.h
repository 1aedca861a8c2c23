#pragma once
// One running request: its text becomes sentences, sentences become utterances, their PCM becomes packets in the stream log.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include "tts/base/playback_clock.h"
#include "tts/engine/voice.h"
#include "tts/synthesis/synthesis.h"
#include "tts/text/incremental_text.h"

#include "audio_output.h"
#include "running_request.h"
#include "utterance_control.h"

namespace tts::synthesis {

// Everything private runs on the job's strand, so a request's work never runs beside itself and needs no locks. The job lives as
// long as something may still call it: a task on the strand or an utterance's sink. It ends exactly once: the log has ended and
// every utterance got its final call.
class Job : public std::enable_shared_from_this<Job> {
 public:
  using Strand = boost::asio::strand<boost::asio::thread_pool::executor_type>;

  struct Setup {
    const ServiceParts& parts;
    const ServiceOptions& options;
    const engine::Voice& voice;
    SynthesisRequest request;
    std::uint64_t listener = 0;  // unique in the process
    std::shared_ptr<RunningRequest> running;
    std::function<void()> on_end;  // on the strand, as the job's last act
  };

  Job(Setup setup, const Strand& strand);

  void start();  // any thread; posts

 private:
  class Sink;

  struct Sentence {
    text::PreparedUtterance prepared;
    std::uint64_t begin = 0, end = 0;                 // code points of all the text
    std::shared_ptr<const SynthesisRequest> request;  // as it was when this was submitted
    const engine::Voice* voice = nullptr;             // likewise
    bool refine = false;                        // the text pass comes first
    bool waiting = false;                       // the engine's queue was full; submitted again later
    std::shared_ptr<UtteranceControl> control;  // while its utterance is in flight
    std::vector<float> held;                    // its audio, while its turn has not come
    bool all_came = false;                      // the engine gave its last audio
    bool begun = false;                         // its first audio went to the output
    bool done = false;
    std::optional<Error> error;  // kept until its turn, so that what comes before is still heard
  };

  // Text that can be spoken but is not prepared yet. Sentences ahead are prepared as late as they are submitted, so that a change counts
  // for them and short ones that came meanwhile are grouped.
  struct ReadyText {
    std::string text;
    std::uint32_t flushes = 0;  // kFlushed marks that stand behind its audio
    bool closed = false;        // what comes later is none of it
    bool mute = false;          // as it is there is nothing in it to say
  };

  struct FlushPoint {
    std::uint32_t sentences = 0;  // once so many have been spoken
    std::uint64_t end = 0;        // code points of all the text
    std::uint32_t marks = 0;
  };

  template <class Task>
  void post(Task task);

  void begin();
  void take_input();
  void take(input::Text text);
  void take(input::Flush);
  void take(input::End);
  void take(input::Change change);
  void take(input::RunsDryAt report);
  void take(input::Bitrate bitrate);
  void add_ready(std::string text);
  void close_ready(std::uint32_t flushes);
  bool prepare_next();
  void accept(text::PreparedText prepared);
  void give_up_ready();
  void unprepare();

  void go_on();  // does whatever can be done now
  void submit_due();
  void submit(std::uint32_t index);
  void submit_later(std::uint32_t index, std::chrono::milliseconds wait);
  void submit_waiting();
  Result<engine::UtteranceRequest> utterance_request(std::uint32_t index) const;

  void on_pcm(std::uint32_t index, std::vector<float> samples, bool last, UtteranceControl& control);
  void on_done(std::uint32_t index, engine::UtteranceSummary summary);
  void on_error(std::uint32_t index, Error error);
  void on_wake();
  void on_time();

  void retire(std::uint32_t index);  // the utterance's final call came
  void refined(std::uint32_t index, const std::vector<std::int32_t>& tokens);
  void hold(Sentence& sentence, const std::vector<float>& samples);
  void feed(const std::vector<float>& samples, bool more_follows);
  void advance();
  void mark_flushed();
  void note_waiting();
  void complete();

  void note_output(const Status& status);
  Duration waits_in_log() const;  // audio that the consumer has not taken
  void note_listening();  // brings the listener's clock up to date
  void tell_listening();  // to the engine, for every utterance in flight
  TimePoint runs_dry_at(std::uint32_t index) const;  // with all that utterance gave and those before it; zero = nothing is heard yet
  Duration heard_as(const Sentence& sentence) const;  // what is held of it
  Duration heard_as_output(std::uint64_t samples) const;
  TimePoint settle_at() const;
  void set_timer();
  void note_rest();
  bool stop_if_cut();     // true = the log has ended
  bool stop_if_closed();  // likewise
  void fail(Error error);
  void end_if_quiet();
  std::string_view stage() const;

  const ServiceParts& parts_;
  const ServiceOptions& options_;
  const engine::Voice* voice_;
  std::shared_ptr<const SynthesisRequest> request_;  // as it is now wished; without the text
  const std::uint64_t listener_;
  const std::shared_ptr<RunningRequest> running_;
  std::function<void()> on_end_;
  Strand strand_;
  boost::asio::steady_timer resubmission_;
  boost::asio::steady_timer timer_;  // wakes go_on() when time alone changes what can be done

  const TimePoint started_at_;
  text::IncrementalText text_;      // no sentence's end is certain in it
  std::deque<ReadyText> ready_;     // what it gave out
  std::uint64_t ready_begin_ = 0;   // code points of all the text before that
  ReadyText prepared_;              // what became sentences last,
  std::uint64_t prepared_begin_ = 0;  // where it begins
  std::uint32_t prepared_first_ = 0;  // and its first sentence
  std::deque<FlushPoint> flushes_;
  std::vector<Sentence> sentences_;
  std::uint32_t current_ = 0;    // whose audio goes to the output now
  std::uint32_t submitted_ = 0;  // sentences given to the engine so far
  std::uint32_t in_flight_ = 0;  // utterances whose final call has not come
  std::unique_ptr<AudioOutput> output_;
  PlaybackClock playback_;        // of a listener who hears packets as they come
  std::uint64_t delivered_ = 0;  // samples it has counted
  bool sounding_ = false;     // the current sentence has given audio
  bool first_noted_ = false;  // the first packet is in the log, and measured
  bool heard_ = false;        // any sentence has
  bool log_full_ = false;
  bool accepted_ = false;      // the engine has taken an utterance of this request
  bool resubmitting_ = false;  // its timer runs
  bool text_ended_;            // all of it has come
  bool waiting_ = false;       // all that has come is spoken, and more may come
  bool resting_ = false;       // nothing can be done: the log is full, or it waits for text
  bool over_ = false;          // the log has ended
  TimePoint timer_at_ = TimePoint::max();  // when it fires
  TimePoint rested_since_{};
  Duration rested_for_{0};
};

}  // namespace tts::synthesis
