#include "load.h"

#include <algorithm>
#include <cassert>
#include <exception>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/resource.h>

#include "listener.h"
#include "poisson.h"

namespace tts::bench {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr double kProgressEvery = 0.5;
// What a refused listener waits before asking again, whatever the server advises.
constexpr double kLeastRetry = 0.1, kMostRetry = 5.0;

double thread_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Load {
 public:
  Load(const Server& server, const LoadOptions& options, const LoadHooks& hooks)
      : options_(options),
        hooks_(hooks),
        now_([this] { return std::chrono::duration<double>(Clock::now() - begun_).count(); }),
        parts_{
            .server = server, .path = options.path, .format = options.format, .patience = options.patience, .now = now_, .tally = tally_} {
    result_.outcomes.reserve(1024);
  }

  LoadResult run() {
    begun_ = Clock::now();
    spawn(window());
    if (hooks_.progress) spawn(report_progress());
    if (options_.clients > 0) {
      for (std::size_t i = 0; i < options_.clients; ++i) spawn(client(i));
    } else {
      spawn(arrivals());
    }
    context_.run();
    if (failure_) std::rethrow_exception(failure_);
    result_.total = tally_;
    result_.unfinished = options_.finish ? result_.asked - result_.outcomes.size() : 0;
    return std::move(result_);
  }

 private:
  enum class Phase { kRamp, kWindow, kAfter };

  void spawn(asio::awaitable<void> work) {
    asio::co_spawn(context_, std::move(work), [this](std::exception_ptr failure) {
      if (!failure) return;
      failure_ = failure;
      context_.stop();
    });
  }

  asio::awaitable<void> sleep_until(double when) {
    asio::steady_timer timer(context_, begun_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(when)));
    co_await timer.async_wait(asio::use_awaitable);
  }

  asio::awaitable<void> client(std::size_t index) {
    co_await sleep_until(options_.ramp * static_cast<double>(index) / static_cast<double>(options_.clients));
    for (;;) {
      const auto outcome = co_await ask();
      if (outcome.fate != Fate::kDone) {
        co_await sleep_until(now_() + std::clamp(outcome.retry_after, kLeastRetry, kMostRetry));
      } else if (options_.pace == Pace::kPlayback) {
        co_await sleep_until(outcome.played_until);
      }
    }
  }

  asio::awaitable<void> arrivals() {
    for (PoissonArrivals poisson(options_.rate, options_.seed);;) {
      co_await sleep_until(poisson.next());
      spawn(ask_once());
    }
  }

  asio::awaitable<void> ask_once() { co_await ask(); }

  asio::awaitable<Outcome> ask() {
    const bool counts = phase_ == Phase::kWindow && (options_.requests == 0 || result_.asked < options_.requests);
    if (counts) ++result_.asked;
    auto outcome = co_await listen(parts_, hooks_.next_body());
    if (counts) {
      result_.outcomes.push_back(outcome);
      end_when_through();
    }
    co_return outcome;
  }

  asio::awaitable<void> window() {
    co_await sleep_until(options_.ramp);
    phase_ = Phase::kWindow;
    result_.before = tally_;
    window_began_ = now_();
    cpu_before_ = thread_cpu_seconds();
    if (hooks_.window_begins) hooks_.window_begins();
    co_await sleep_until(options_.ramp + options_.window);
    close_window();
    if (!options_.finish) context_.stop();
    end_when_through();
    co_await sleep_until(now_() + std::chrono::duration<double>(options_.most_wait).count());
    context_.stop();
  }

  void close_window() {
    if (phase_ == Phase::kAfter) return;
    phase_ = Phase::kAfter;
    result_.at_end = tally_;
    result_.window = now_() - window_began_;
    result_.client_cores = (thread_cpu_seconds() - cpu_before_) / result_.window;
    if (hooks_.window_ends) hooks_.window_ends();
  }

  void end_when_through() {
    if (options_.requests > 0 && result_.outcomes.size() == options_.requests) close_window();
    if (phase_ == Phase::kAfter && result_.outcomes.size() == result_.asked) context_.stop();
  }

  asio::awaitable<void> report_progress() {
    for (;;) {
      co_await sleep_until(now_() + kProgressEvery);
      hooks_.progress(tally_, now_());
    }
  }

  const LoadOptions& options_;
  const LoadHooks& hooks_;
  Clock::time_point begun_;
  Tally tally_;
  const LoadClock now_;
  const ListenerParts parts_;
  LoadResult result_;
  Phase phase_ = Phase::kRamp;
  double window_began_ = 0, cpu_before_ = 0;
  std::exception_ptr failure_;
  asio::io_context context_{1};  // last: destroying it ends the coroutines, which use everything above
};

}  // namespace

LoadResult run_load(const Server& server, const LoadOptions& options, const LoadHooks& hooks) {
  assert((options.clients > 0) != (options.rate > 0) && options.window > 0);
  return Load(server, options, hooks).run();
}

}  // namespace tts::bench
