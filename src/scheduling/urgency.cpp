#include "urgency.h"

namespace tts::scheduling {

Urgency urgency_of(const Listening& listening, const UrgencyRules& rules) noexcept {
  if (listening.whole) return Urgency::kPlenty;
  const Duration spare = listening.left - listening.next_sound;
  if (listening.started && spare >= rules.max_lead) return Urgency::kFarAhead;
  if (listening.follows) return Urgency::kPlenty;
  if (!listening.started || listening.early || spare < rules.thin) return Urgency::kNow;
  return spare < rules.plenty ? Urgency::kSoon : Urgency::kPlenty;
}

}  // namespace tts::scheduling
