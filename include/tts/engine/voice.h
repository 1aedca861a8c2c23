#pragma once
// A voice that requests can name, with its speaker vector resolved.

#include <string>
#include <vector>

#include "tts/engine/utterance.h"

namespace tts::engine {

struct Voice {
  std::string id, title, gender;
  std::vector<std::string> languages;
  SpeakerVector speaker;  // null = the model's voice without a speaker vector
};

}  // namespace tts::engine
