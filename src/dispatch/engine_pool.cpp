#include "tts/dispatch/engine_pool.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include <spdlog/spdlog.h>

#include "choose.h"

namespace tts::dispatch {
namespace {

using engine::UtteranceId;

constexpr std::uint32_t kFirstAttempt = 1;
constexpr std::uint32_t kSecondAttempt = 2;

// The more useful of two refusals for the client: a queue that empties beats an engine that is gone, the sooner the better.
Error better(std::optional<Error> a, Error b) {
  if (!a) return b;
  const auto rank = [](const Error& error) { return error.code == ErrorCode::kQueueFull ? 0 : 1; };
  if (rank(*a) != rank(b)) return rank(*a) < rank(b) ? *std::move(a) : b;
  return a->retry_after <= b.retry_after ? *std::move(a) : b;
}

}  // namespace

// Lives as long as any utterance that was submitted through it, so that final calls after the pool's end are safe.
class EnginePool::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(std::vector<engine::UtteranceEngine*> engines) : engines_(std::move(engines)) {
    if (engines_.empty()) throw std::invalid_argument("engine pool: no engines");
    if (std::find(engines_.begin(), engines_.end(), nullptr) != engines_.end()) throw std::invalid_argument("engine pool: null engine");
  }

  Result<UtteranceId> submit(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink);
  void cancel(UtteranceId id) noexcept;
  void set_paused(UtteranceId id, bool paused) noexcept;
  void set_runs_dry_at(UtteranceId id, TimePoint when) noexcept;
  engine::EngineLoad load() const;
  engine::EngineHealth health() const;
  void close();  // returns when no retry is under way, and none begins later: the engines may then go

 private:
  class Relay;

  // Where an utterance is now. While a submission is under way its engine's id is 0, and what is asked meanwhile only leaves a mark.
  struct Place {
    std::uint64_t listener = 0;
    std::size_t engine = 0;
    UtteranceId id = 0;
    std::uint32_t attempt = 0;
    bool cancelled = false;
    bool paused = false;
    TimePoint runs_dry_at{};  // as last reported; zero = nothing was
  };

  std::optional<std::size_t> engine_of(std::uint64_t listener) const;  // requires mutex_
  std::optional<Error> place(UtteranceId pool_id, std::uint32_t attempt, const engine::UtteranceRequest& request,
                             const std::shared_ptr<engine::UtteranceSink>& relay, std::optional<std::size_t> avoid,
                             std::optional<std::size_t> prefer);
  void note_trial(UtteranceId pool_id, std::size_t engine);
  void settle(UtteranceId pool_id, std::uint32_t attempt, UtteranceId id);
  bool retry(UtteranceId pool_id, const engine::UtteranceRequest& request, const std::shared_ptr<engine::UtteranceSink>& relay);
  std::optional<std::size_t> begin_attempt(UtteranceId pool_id, std::uint32_t attempt);
  void forget(UtteranceId pool_id);

  const std::vector<engine::UtteranceEngine*> engines_;
  // Held over calls about one utterance, so that they reach an engine in the order they were made; never over submit. Engines call sinks
  // from threads of their own, so no sink can run under it.
  std::mutex mutex_;
  std::unordered_map<UtteranceId, Place> places_;
  UtteranceId last_id_ = 0;
  std::mutex retrying_;  // taken before mutex_; held over a whole retry
  bool closed_ = false;  // guarded by retrying_
};

// Stands between an engine and the utterance's own sink. Its calls come from one engine's thread at a time: the second attempt is
// submitted within the final call of the first.
class EnginePool::Impl::Relay final : public engine::UtteranceSink, public std::enable_shared_from_this<Relay> {
 public:
  Relay(std::shared_ptr<Impl> pool, UtteranceId pool_id, engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink)
      : pool_(std::move(pool)), pool_id_(pool_id), request_(std::move(request)), sink_(std::move(sink)) {}

  const engine::UtteranceRequest& request() const noexcept { return request_; }

  void on_pcm(std::span<const float> samples, bool last) override {
    started_ = true;
    sink_->on_pcm(samples, last);
  }

  void on_done(const engine::UtteranceSummary& summary) override {
    pool_->forget(pool_id_);
    std::exchange(sink_, nullptr)->on_done(summary);
  }

  void on_error(const Error& error) override {
    if (error.code == ErrorCode::kEngineFailure && !started_ && !std::exchange(retried_, true)) {
      if (pool_->retry(pool_id_, request_, shared_from_this())) return;
    }
    pool_->forget(pool_id_);
    std::exchange(sink_, nullptr)->on_error(error);
  }

 private:
  const std::shared_ptr<Impl> pool_;
  const UtteranceId pool_id_;
  const engine::UtteranceRequest request_;
  std::shared_ptr<engine::UtteranceSink> sink_;
  bool started_ = false;
  bool retried_ = false;
};

Result<UtteranceId> EnginePool::Impl::submit(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink) {
  if (!sink) return Error{ErrorCode::kInvalidArgument, "an utterance needs a sink", "sink", {}};
  UtteranceId pool_id = 0;
  std::optional<std::size_t> prefer;
  {
    const std::lock_guard lock(mutex_);
    pool_id = ++last_id_;
    prefer = engine_of(request.listener);
    places_[pool_id] = {.listener = request.listener, .attempt = kFirstAttempt};
  }
  const auto relay = std::make_shared<Relay>(shared_from_this(), pool_id, std::move(request), std::move(sink));
  if (auto refused = place(pool_id, kFirstAttempt, relay->request(), relay, std::nullopt, prefer)) {
    forget(pool_id);
    return *std::move(refused);
  }
  return pool_id;
}

// Where an utterance of this listener is that is not over. One that is being submitted says where it was tried last.
std::optional<std::size_t> EnginePool::Impl::engine_of(std::uint64_t listener) const {
  if (listener == 0) return std::nullopt;
  const auto found = std::find_if(places_.begin(), places_.end(), [&](const auto& entry) { return entry.second.listener == listener; });
  return found == places_.end() ? std::nullopt : std::optional(found->second.engine);
}

// Tries engines in order of load until one takes the utterance; nullopt = taken.
std::optional<Error> EnginePool::Impl::place(UtteranceId pool_id, std::uint32_t attempt, const engine::UtteranceRequest& request,
                                             const std::shared_ptr<engine::UtteranceSink>& relay, std::optional<std::size_t> avoid,
                                             std::optional<std::size_t> prefer) {
  std::vector<Candidate> candidates;
  std::string details;
  for (const auto* engine : engines_) {
    const auto health = engine->health();
    candidates.push_back({.load = engine->load(), .ready = health.ready});
    if (!health.ready) details += (details.empty() ? "" : "; ") + health.detail;
  }
  std::optional<Error> refusal;
  for (const std::size_t index : order_of_trial(candidates, avoid, prefer)) {
    note_trial(pool_id, index);
    auto id = engines_[index]->submit(request, relay);
    if (id.ok()) {
      settle(pool_id, attempt, *id);
      return std::nullopt;
    }
    const bool another_may_take_it = id.error().code == ErrorCode::kQueueFull || id.error().code == ErrorCode::kUnavailable;
    if (!another_may_take_it) return std::move(id).error();
    refusal = better(std::move(refusal), std::move(id).error());
  }
  if (refusal) return refusal;
  return Error{ErrorCode::kUnavailable, "no engine is ready (" + details + "); try again or use another replica", {}, {}};
}

// Before the submission, so that a failure that comes before settle() knows whose it is.
void EnginePool::Impl::note_trial(UtteranceId pool_id, std::size_t engine) {
  const std::lock_guard lock(mutex_);
  if (const auto found = places_.find(pool_id); found != places_.end()) found->second.engine = engine;
}

// The engine may have finished or failed the utterance already, in which case there is nothing to note.
void EnginePool::Impl::settle(UtteranceId pool_id, std::uint32_t attempt, UtteranceId id) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(pool_id);
  if (found == places_.end() || found->second.attempt != attempt) return;
  Place& place = found->second;
  place.id = id;
  if (place.paused) engines_[place.engine]->set_paused(id, true);
  if (place.runs_dry_at != TimePoint{}) engines_[place.engine]->set_runs_dry_at(id, place.runs_dry_at);
  if (place.cancelled) engines_[place.engine]->cancel(id);
}

// False when the failure stands: no engine takes the utterance, or nobody wants it any more.
bool EnginePool::Impl::retry(UtteranceId pool_id, const engine::UtteranceRequest& request,
                             const std::shared_ptr<engine::UtteranceSink>& relay) {
  const std::lock_guard lock(retrying_);
  if (closed_) return false;
  const auto failed = begin_attempt(pool_id, kSecondAttempt);
  if (!failed || place(pool_id, kSecondAttempt, request, relay, failed, std::nullopt)) return false;
  spdlog::warn("request {}: submitted once more after an engine failure before its first sample", request.request_id);
  return true;
}

// The engine of the attempt before; nullopt when the utterance was cancelled.
std::optional<std::size_t> EnginePool::Impl::begin_attempt(UtteranceId pool_id, std::uint32_t attempt) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(pool_id);
  if (found == places_.end() || found->second.cancelled) return std::nullopt;
  found->second.attempt = attempt;
  found->second.id = 0;
  return found->second.engine;
}

void EnginePool::Impl::close() {
  const std::lock_guard lock(retrying_);
  closed_ = true;
}

void EnginePool::Impl::forget(UtteranceId pool_id) {
  const std::lock_guard lock(mutex_);
  places_.erase(pool_id);
}

void EnginePool::Impl::cancel(UtteranceId id) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  Place& place = found->second;
  place.cancelled = true;
  if (place.id != 0) engines_[place.engine]->cancel(place.id);
}

void EnginePool::Impl::set_paused(UtteranceId id, bool paused) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  Place& place = found->second;
  place.paused = paused;
  if (place.id != 0) engines_[place.engine]->set_paused(place.id, paused);
}

void EnginePool::Impl::set_runs_dry_at(UtteranceId id, TimePoint when) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  Place& place = found->second;
  place.runs_dry_at = when;
  if (place.id != 0) engines_[place.engine]->set_runs_dry_at(place.id, when);
}

engine::EngineLoad EnginePool::Impl::load() const {
  engine::EngineLoad sum;
  bool all_measured = true;
  std::optional<std::chrono::milliseconds> shortest_wait;
  for (const auto* engine : engines_) {
    const auto load = engine->load();
    sum.queued += load.queued;
    sum.active += load.active;
    sum.parked += load.parked;
    sum.max_active += load.max_active;
    sum.max_queued += load.max_queued;
    if (!engine->health().ready) continue;
    all_measured &= load.realtime_streams > 0;
    sum.realtime_streams += load.realtime_streams;
    shortest_wait = std::min(shortest_wait.value_or(load.expected_wait), load.expected_wait);
  }
  if (!all_measured) sum.realtime_streams = 0;
  sum.expected_wait = shortest_wait.value_or(std::chrono::milliseconds(0));
  return sum;
}

engine::EngineHealth EnginePool::Impl::health() const {
  engine::EngineHealth sum;
  for (const auto* engine : engines_) {
    const auto health = engine->health();
    sum.ready |= health.ready;
    sum.last_progress = std::max(sum.last_progress, health.last_progress);
    if (!health.ready) sum.detail += (sum.detail.empty() ? "" : "; ") + health.detail;
  }
  if (sum.ready) sum.detail.clear();
  return sum;
}

EnginePool::EnginePool(std::vector<engine::UtteranceEngine*> engines) : impl_(std::make_shared<Impl>(std::move(engines))) {}
EnginePool::~EnginePool() { impl_->close(); }

Result<UtteranceId> EnginePool::submit(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink) {
  return impl_->submit(std::move(request), std::move(sink));
}
void EnginePool::cancel(UtteranceId id) noexcept { impl_->cancel(id); }
void EnginePool::set_paused(UtteranceId id, bool paused) noexcept { impl_->set_paused(id, paused); }
void EnginePool::set_runs_dry_at(UtteranceId id, TimePoint when) noexcept { impl_->set_runs_dry_at(id, when); }
engine::EngineLoad EnginePool::load() const { return impl_->load(); }
engine::EngineHealth EnginePool::health() const { return impl_->health(); }

}  // namespace tts::dispatch
