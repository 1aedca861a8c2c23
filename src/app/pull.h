#pragma once
// Follows a synthesis from a thread of its own, for `say` and the warm-up.

#include <chrono>
#include <functional>

#include "tts/base/result.h"
#include "tts/synthesis/synthesis.h"

namespace tts::app {

// Blocks until the log has ended, handing packets over in order. `on_tick`, when given, is called at least every `tick` meanwhile.
Status pull(synthesis::Synthesis& synthesis, const std::function<void(const resume::Packet&)>& on_packet,
            const std::function<void()>& on_tick = {}, std::chrono::milliseconds tick = std::chrono::milliseconds(20));

}  // namespace tts::app
