#pragma once
// One accepted utterance from submission to its final call.

#include <atomic>
#include <memory>

#include "tts/engine/utterance_engine.h"

namespace tts::scheduling {

// The flags may be set from any thread; everything else belongs to the engine's thread once the mailbox handed it over.
struct Utterance {
  engine::UtteranceId id = 0;
  engine::UtteranceRequest request;
  std::shared_ptr<engine::UtteranceSink> sink;  // null after the final call
  TimePoint submitted_at{};
  std::atomic<bool> cancelled{false};
  std::atomic<bool> paused{false};
};

using UtterancePtr = std::shared_ptr<Utterance>;

}  // namespace tts::scheduling
