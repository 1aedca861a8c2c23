#pragma once
// What the server's own metrics say about a stretch of time.

#include <string>
#include <string_view>

namespace tts::bench {

// Sum over all series of one metric in Prometheus' text format; 0 when there is none.
double metric_value(std::string_view metrics, std::string_view name);

// Value of a label of the first series of a metric; empty when there is none. Escapes are left as they are.
std::string metric_label(std::string_view metrics, std::string_view name, std::string_view label);

struct EngineShare {
  double steps_per_second = 0;  // generation steps of the batch
  double step_seconds = 0;      // mean of one
  double rows_per_step = 0;     // utterances that shared one
  double decode_seconds = 0;    // mean of one decoder and vocoder pass
  double streams_per_decode = 0;
  double generate_share = 0, decode_share = 0;  // of the time, by the engine's thread
};

// `before` and `after`: two renderings, `seconds` > 0 apart.
EngineShare engine_share(std::string_view before, std::string_view after, double seconds);

}  // namespace tts::bench
