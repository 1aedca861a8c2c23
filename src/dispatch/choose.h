#pragma once
// Which engines to try, in which order.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "tts/engine/utterance_engine.h"

namespace tts::dispatch {

struct Candidate {
  engine::EngineLoad load;
  bool ready = false;
};

// Indices of ready candidates, shortest expected wait first, then least (queued + active) over the streams it serves well, ties in the
// given order. `avoid` comes last, and only when it is the only one left: an utterance that failed there should get another engine if
// there is one. `prefer` comes first, whatever its load.
std::vector<std::size_t> order_of_trial(std::span<const Candidate> candidates, std::optional<std::size_t> avoid = std::nullopt,
                                        std::optional<std::size_t> prefer = std::nullopt);

}  // namespace tts::dispatch
