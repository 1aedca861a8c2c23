#pragma once
// How badly a row's listener needs its next sound.

#include <cstdint>

#include "tts/base/clock.h"

namespace tts::scheduling {

enum class Urgency : std::uint8_t {
  kNow,      // the listener hears silence, or will in a moment
  kSoon,     // has something to hear, but not plenty
  kPlenty,   // could do without for a while, or nobody is listening yet
  kFarAhead  // has more than max_lead: what is made now may never be heard
};

struct Listening {
  bool whole = false;      // a file: nobody listens
  bool follows = false;    // an earlier utterance of the same listener is still generating
  bool early = false;      // gets sound of less than exact lookahead, which costs extra until it has caught up
  bool started = false;    // hears something, of this utterance or of an earlier one
  Duration left{0};        // still to be heard; negative = dry
  Duration next_sound{0};  // from now until this row could give more, if it ran without a break
};

struct UrgencyRules {
  Duration thin = std::chrono::milliseconds(40);  // beyond next_sound; covers encoding, sending and what the estimate is wrong by
  Duration plenty = std::chrono::seconds(1);
  Duration max_lead = std::chrono::seconds(10);
};

Urgency urgency_of(const Listening& listening, const UrgencyRules& rules) noexcept;

}  // namespace tts::scheduling
