#pragma once
// One running request: its text becomes sentences, sentences become utterances, their PCM becomes packets in the stream log.

#include <cstdint>
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
    bool refine = false;                        // the text pass comes first
    bool waiting = false;                       // the engine's queue was full; submitted again later
    std::shared_ptr<UtteranceControl> control;  // while its utterance is in flight
    std::vector<float> held;                    // its audio, while its turn has not come
    bool all_came = false;                      // the engine gave its last audio
    bool done = false;
    std::optional<Error> error;  // kept until its turn, so that what comes before is still heard
  };

  template <class Task>
  void post(Task task);

  void prepare();
  void submit_due();
  void submit(std::uint32_t index);
  void submit_later(std::uint32_t index, std::chrono::milliseconds wait);
  void submit_waiting();
  Result<engine::UtteranceRequest> utterance_request(std::uint32_t index) const;

  void on_pcm(std::uint32_t index, std::vector<float> samples, bool last, UtteranceControl& control);
  void on_done(std::uint32_t index, engine::UtteranceSummary summary);
  void on_error(std::uint32_t index, Error error);
  void on_wake();

  void retire(std::uint32_t index);  // the utterance's final call came
  void refined(std::uint32_t index, const std::vector<std::int32_t>& tokens);
  void hold(Sentence& sentence, const std::vector<float>& samples);
  void feed(const std::vector<float>& samples, bool more_follows);
  void advance();
  void complete();

  void note_output(const Status& status);
  void note_listening();  // brings the listener's clock up to date
  void tell_listening();  // to the engine, for every utterance in flight
  TimePoint runs_dry_at(std::uint32_t index) const;  // with all that utterance gave and those before it; zero = nothing is heard yet
  Duration heard_as(std::uint64_t samples) const;    // samples at the model's rate
  bool stop_if_cut();     // true = the log has ended
  bool stop_if_closed();  // likewise
  void fail(Error error);
  void end_if_quiet();
  std::string_view stage() const;
  text::TextOptions text_options() const;

  const ServiceParts& parts_;
  const ServiceOptions& options_;
  const engine::Voice& voice_;
  SynthesisRequest request_;
  const std::uint64_t listener_;
  const std::shared_ptr<RunningRequest> running_;
  std::function<void()> on_end_;
  Strand strand_;
  boost::asio::steady_timer resubmission_;

  const TimePoint started_at_;
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
  bool resubmitting_ = false;  // the timer runs
  bool over_ = false;          // the log has ended
  TimePoint paused_at_{};
  Duration paused_for_{0};
};

}  // namespace tts::synthesis
