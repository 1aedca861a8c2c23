#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include <boost/asio/thread_pool.hpp>

#include "tts/audio/encoder.h"
#include "tts/synthesis/synthesis.h"

#include "job.h"
#include "running_request.h"
#include "validate.h"

namespace tts::synthesis {
namespace {

constexpr std::chrono::milliseconds kSoonestRetry{1000}, kLatestRetry{30000};
constexpr unsigned kSeedBits = 53;  // a random seed survives JSON numbers, so that a client can ask for the same audio again

const engine::Voice* find_voice(const std::vector<engine::Voice>& voices, std::string_view id) {
  const auto found = std::find_if(voices.begin(), voices.end(), [&](const auto& known) { return known.id == id; });
  return found == voices.end() ? nullptr : &*found;
}

Error unknown_voice() { return {ErrorCode::kNotFound, "there is no voice of this name; see the list of voices", "voice", {}}; }

// What a decoder gives before the first sound; only bare Opus packets do not carry it themselves.
Result<std::uint32_t> pre_skip_of(const SynthesisRequest& request, const ServiceOptions& options) {
  if (request.format.container != audio::Container::kOpusPackets) return 0U;
  auto encoder = audio::make_encoder({.format = request.format,
                                      .total_samples = 0,
                                      .opus_complexity = options.opus_complexity,
                                      .adaptive_bitrate = request.adaptive_bitrate});
  if (!encoder.ok()) return std::move(encoder).error();
  return (*encoder)->pre_skip();
}

class Handle final : public Synthesis {
 public:
  struct Setup {
    std::shared_ptr<RunningRequest> running;
    const std::vector<engine::Voice>& voices;
    bool incremental = false;
    std::uint32_t pre_skip = 0;
  };

  explicit Handle(Setup setup)
      : running_(std::move(setup.running)), voices_(setup.voices), incremental_(setup.incremental), pre_skip_(setup.pre_skip) {}
  ~Handle() override { running_->discard(); }

  resume::StreamLog& log() noexcept override { return running_->log(); }
  std::uint64_t seed() const noexcept override { return running_->seed(); }
  SynthesisReport report() const override { return running_->report(); }
  std::uint32_t pre_skip() const noexcept override { return pre_skip_; }

  Status append_text(std::string_view text) override { return incremental_ ? running_->append_text(text) : not_incremental(); }
  void flush_text() override {
    if (incremental_) running_->tell(input::Flush{});
  }
  void end_text() override {
    if (incremental_) running_->end_text();
  }
  Status change(SpeechChange change) override {
    if (!incremental_) return not_incremental();
    if (change.speed) {
      if (auto wrong = refused_speed(*change.speed)) return *std::move(wrong);
    }
    const engine::Voice* voice = nullptr;
    if (change.voice && (voice = find_voice(voices_, *change.voice)) == nullptr) return unknown_voice();
    running_->tell(input::Change{std::move(change), voice});
    return Ok{};
  }
  std::uint64_t characters() const override { return running_->characters(); }

  void report_runs_dry_at(TimePoint when) override { running_->tell(input::RunsDryAt{when}); }
  void set_bitrate(std::uint32_t bits_per_second) override { running_->tell(input::Bitrate{bits_per_second}); }

 private:
  const std::shared_ptr<RunningRequest> running_;
  const std::vector<engine::Voice>& voices_;
  const bool incremental_;
  const std::uint32_t pre_skip_;
};

ServiceOptions checked(ServiceOptions options) {
  const auto found = problems(options);
  if (found.empty()) return options;
  std::string message = "synthesis options:";
  for (const auto& problem : found) message += "\n  " + problem;
  throw std::invalid_argument(message);
}

}  // namespace

class Service::Impl {
 public:
  Impl(ServiceParts parts, ServiceOptions options) : parts_(parts), options_(checked(std::move(options))), workers_(options_.workers) {}

  ~Impl() {
    {
      std::unique_lock lock(mutex_);
      accepting_ = false;
      const auto running = running_;  // a cut request ends on a worker, which takes the lock
      lock.unlock();
      for (const auto& request : running) request->cut({ErrorCode::kUnavailable, "the server is stopping; try another replica", {}, {}});
      lock.lock();
      all_ended_.wait(lock, [&] { return running_.empty(); });
    }
    workers_.join();
  }

  Result<std::unique_ptr<Synthesis>> start(SynthesisRequest request) {
    if (auto refused = refusal(request, options_, parts_.front_end.has_refine())) return *std::move(refused);
    const engine::Voice* const voice = find_voice(parts_.voices, request.voice);
    if (voice == nullptr) return unknown_voice();
    const auto pre_skip = pre_skip_of(request, options_);
    if (!pre_skip.ok()) return pre_skip.error();
    const bool incremental = request.incremental;

    std::shared_ptr<RunningRequest> running;
    std::uint64_t listener = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!accepting_) {
        parts_.metrics.rejected("draining");
        return Error{ErrorCode::kUnavailable, "the server is stopping; try another replica", {}, {}};
      }
      if (running_.size() >= options_.max_requests) {
        parts_.metrics.rejected("queue_full");
        return Error{ErrorCode::kQueueFull,
                     "the server is busy with " + std::to_string(running_.size()) + " requests; try again later",
                     {},
                     std::clamp(parts_.engine.load().expected_wait, kSoonestRetry, kLatestRetry)};
      }
      const std::uint64_t seed = request.seed ? *request.seed : random_() >> (64U - kSeedBits);
      running = std::make_shared<RunningRequest>(seed, options_.max_text_chars, request.log.value_or(options_.log), parts_.metrics);
      running_.insert(running);
      listener = ++last_listener_;
    }
    const auto job = std::make_shared<Job>(Job::Setup{.parts = parts_,
                                                      .options = options_,
                                                      .voice = *voice,
                                                      .request = std::move(request),
                                                      .listener = listener,
                                                      .running = running,
                                                      .on_end = [this, running] { ended(running); }},
                                           boost::asio::make_strand(workers_.get_executor()));
    job->start();
    return std::unique_ptr<Synthesis>(std::make_unique<Handle>(
        Handle::Setup{.running = std::move(running), .voices = parts_.voices, .incremental = incremental, .pre_skip = *pre_skip}));
  }

  void stop_accepting() {
    const std::lock_guard lock(mutex_);
    accepting_ = false;
  }

  std::uint32_t running() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(running_.size());
  }

 private:
  void ended(const std::shared_ptr<RunningRequest>& request) {
    const std::lock_guard lock(mutex_);
    running_.erase(request);
    if (running_.empty()) all_ended_.notify_all();
  }

  const ServiceParts parts_;
  const ServiceOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable all_ended_;
  bool accepting_ = true;  // guarded by mutex_, as the next three
  std::uint64_t last_listener_ = 0;
  std::unordered_set<std::shared_ptr<RunningRequest>> running_;
  std::mt19937_64 random_{std::random_device{}()};
  boost::asio::thread_pool workers_;  // last: its threads use everything above
};

Service::Service(ServiceParts parts, ServiceOptions options) : impl_(std::make_unique<Impl>(parts, std::move(options))) {}
Service::~Service() = default;

Result<std::unique_ptr<Synthesis>> Service::start(SynthesisRequest request) { return impl_->start(std::move(request)); }
void Service::stop_accepting() { impl_->stop_accepting(); }
std::uint32_t Service::running() const { return impl_->running(); }

}  // namespace tts::synthesis
