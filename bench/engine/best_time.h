#pragma once
// The fastest of many repetitions: on a machine that does other work too, the one figure that repeats.

#include <algorithm>
#include <chrono>
#include <limits>

#include <benchmark/benchmark.h>

namespace tts::bench {

class BestTime {
 public:
  template <class Fn>
  void measure(Fn&& fn) {
    const auto begin = std::chrono::steady_clock::now();
    fn();
    best_ = std::min(best_, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  void report(benchmark::State& state) const { state.counters["best_ms"] = best_; }

 private:
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace tts::bench
