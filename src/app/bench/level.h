#pragma once
// One level of load, boiled down to figures, and whether the server passed it.

#include <optional>
#include <string>
#include <vector>

#include "engine_share.h"
#include "load.h"
#include "statistics.h"

namespace tts::bench {

struct Level {
  std::string name;         // "closed 8", "open 75 %"
  std::size_t clients = 0;  // closed loop; 0 = open loop
  double load = 0;          // open loop: share of the closed loop's best
  double rate = 0;          // open loop: requests a second

  double window = 0;                                                              // s
  std::size_t asked = 0, completed = 0, refused = 0, failed = 0, unfinished = 0;  // requests of the window
  std::string error;                                                              // of the first that failed
  Distribution first_byte, first_audio, gap, rtf, retry_after;  // s; rtf a ratio; over the completed, retry_after over the refused
  std::vector<double> first_audio_values;                       // s, ascending
  std::size_t underruns = 0, dry = 0;  // silences, and requests with at least one: of the whole load, ramp included
  double underrun_seconds = 0;
  double audio_rate = 0;         // s of audio that arrived a second, over the window
  double audio_per_request = 0;  // s, of the completed

  double client_cores = 0;             // processor time of the load generator a second
  std::optional<double> server_cores;  // the same of the server, where it runs in this process
  std::optional<EngineShare> engine;   // where its metrics are known
};

// `options` as given to run_load.
Level make_level(const LoadOptions& options, const LoadResult& result);

// Empty when the level is passed: no silence, no refusal, no failure, and every request that was asked is through. Otherwise why not.
std::string why_not_passed(const Level& level);

}  // namespace tts::bench
