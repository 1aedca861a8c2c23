#pragma once
// Many listeners at once, all on the calling thread.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "http_client.h"
#include "outcome.h"
#include "tally.h"

namespace tts::bench {

// When a listener of a closed loop asks for the next text.
enum class Pace : std::uint8_t {
  kArrival,   // as soon as the last one has arrived: the server never rests
  kPlayback,  // when the last one has been heard to its end, as people do
};

struct LoadOptions {
  std::string path = "/synthesize_stream";
  std::string format = "pcm";
  std::size_t clients = 1;  // closed loop: so many listeners at every moment. 0 = open loop
  double rate = 0;          // open loop: requests a second, Poisson arrivals
  Pace pace = Pace::kArrival;
  std::uint64_t seed = 0;    // of the arrivals
  double ramp = 0;           // s of load before the window; the listeners of a closed loop begin one after the other in it
  double window = 10;        // s in which requests are measured; with `requests`, the most
  std::size_t requests = 0;  // the window ends when so many of its requests are through; 0 = by time
  bool finish = true;        // wait for every request of the window, the load going on meanwhile; false = cut at the window's end
  std::chrono::milliseconds patience{60'000};    // a listener to whom nothing comes for so long gives up
  std::chrono::milliseconds most_wait{300'000};  // for `finish`; what is not through by then counts as failed
};

struct LoadHooks {
  std::function<std::string()> next_body;                  // the request to send next
  std::function<void(const Tally&, double now)> progress;  // twice a second; `now` in s since the load began
  std::function<void()> window_begins, window_ends;        // on the load's thread; brief
};

struct LoadResult {
  std::vector<Outcome> outcomes;  // of the requests asked in the window, those that ended
  std::size_t asked = 0;          // in the window
  std::size_t unfinished = 0;     // of these, without an end within most_wait; 0 when `finish` is off
  double window = 0;              // s it really lasted
  Tally before;                   // when it began
  Tally at_end;                   // when it ended
  Tally total;                    // when all was over
  double client_cores = 0;        // processor time of this thread over the window
};

// Blocks until the load is over. Requests that were only there to keep it up are cut at the end.
LoadResult run_load(const Server& server, const LoadOptions& options, const LoadHooks& hooks);

}  // namespace tts::bench
