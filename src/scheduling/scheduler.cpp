#include "tts/scheduling/scheduler.h"

#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "engine_loop.h"
#include "mailbox.h"
#include "progress.h"
#include "validate.h"

namespace tts::scheduling {
namespace {

std::unique_ptr<engine::StepEngine> checked(std::unique_ptr<engine::StepEngine> step_engine, const SchedulerOptions& options) {
  if (!step_engine) throw std::invalid_argument("scheduler: no engine");
  const auto found = problems(options, step_engine->info());
  if (found.empty()) return step_engine;
  std::string message = "scheduler options:";
  for (const auto& problem : found) message += "\n  " + problem;
  throw std::invalid_argument(message);
}

}  // namespace

class Scheduler::Impl {
 public:
  Impl(std::unique_ptr<engine::StepEngine> step_engine, SchedulerOptions options, const Clock& clock, observability::Metrics& metrics)
      : options_(std::move(options)),
        clock_(clock),
        engine_(checked(std::move(step_engine), options_)),
        mailbox_(options_.max_queue, options_.max_wait, clock, metrics),
        progress_({.max_failures_in_a_row = options_.max_failures_in_a_row,
                   .failure_cooldown = options_.failure_cooldown,
                   .hang_limit = options_.hang_limit},
                  clock.now()),
        loop_(*engine_, options_, clock, metrics, mailbox_, progress_),
        thread_([this] { run(); }) {}

  ~Impl() { stop(std::chrono::milliseconds(0)); }

  Result<engine::UtteranceId> submit(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink) {
    return mailbox_.post(std::move(request), std::move(sink));
  }

  void cancel(engine::UtteranceId id) noexcept { mailbox_.cancel(id); }
  void set_paused(engine::UtteranceId id, bool paused) noexcept { mailbox_.set_paused(id, paused); }
  void set_runs_dry_at(engine::UtteranceId id, TimePoint when) noexcept { mailbox_.set_runs_dry_at(id, when); }

  engine::EngineLoad load() const {
    return {.queued = mailbox_.queued(),
            .active = loop_.active(),
            .parked = loop_.parked(),
            .max_active = options_.max_batch,
            .max_queued = options_.max_queue,
            .realtime_streams = loop_.realtime_streams(),
            .expected_wait = std::chrono::ceil<std::chrono::milliseconds>(mailbox_.expected_wait())};
  }

  engine::EngineHealth health() const {
    auto health = progress_.health(clock_.now());
    if (mailbox_.stopping()) {
      health.ready = false;
      health.detail = "stopping";
    }
    return health;
  }

  const engine::EngineInfo& info() const noexcept { return engine_->info(); }

  void stop() { stop(options_.stop_grace); }

 private:
  void stop(std::chrono::milliseconds grace) {
    mailbox_.begin_stop(clock_.now() + grace);
    const std::lock_guard lock(joining_);
    if (thread_.joinable()) thread_.join();
  }

  void run() {
    for (;;) {
      const auto turn = loop_.turn();
      if (turn.finished) return;
      if (turn.worked) continue;
      progress_.idle(true, clock_.now());
      mailbox_.sleep_until(turn.wake_at);
      progress_.idle(false, clock_.now());
    }
  }

  const SchedulerOptions options_;
  const Clock& clock_;
  const std::unique_ptr<engine::StepEngine> engine_;
  Mailbox mailbox_;
  Progress progress_;
  EngineLoop loop_;
  std::mutex joining_;
  std::thread thread_;  // last: runs on everything above
};

Scheduler::Scheduler(std::unique_ptr<engine::StepEngine> step_engine, SchedulerOptions options, const Clock& clock,
                     observability::Metrics& metrics)
    : impl_(std::make_unique<Impl>(std::move(step_engine), std::move(options), clock, metrics)) {}
Scheduler::~Scheduler() = default;

Result<engine::UtteranceId> Scheduler::submit(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink) {
  return impl_->submit(std::move(request), std::move(sink));
}
void Scheduler::cancel(engine::UtteranceId id) noexcept { impl_->cancel(id); }
void Scheduler::set_paused(engine::UtteranceId id, bool paused) noexcept { impl_->set_paused(id, paused); }
void Scheduler::set_runs_dry_at(engine::UtteranceId id, TimePoint when) noexcept { impl_->set_runs_dry_at(id, when); }
engine::EngineLoad Scheduler::load() const { return impl_->load(); }
engine::EngineHealth Scheduler::health() const { return impl_->health(); }
const engine::EngineInfo& Scheduler::info() const noexcept { return impl_->info(); }
void Scheduler::stop() { impl_->stop(); }

}  // namespace tts::scheduling
