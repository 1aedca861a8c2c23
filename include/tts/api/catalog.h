#pragma once
// What requests may name on this server: the model, its voices, and the limits that go into messages and documents.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tts/engine/manifest.h"
#include "tts/engine/utterance.h"

namespace tts::api {

struct CatalogVoice {
  std::string id, title, gender;
  std::vector<std::string> languages;
};

// Names that clients written for OpenAI send; used on that route only.
struct OpenAiAliases {
  std::vector<std::string> models{"tts-1", "tts-1-hd", "gpt-4o-mini-tts"};  // all mean the one model that is served
  std::map<std::string, std::string> voices;                                // alias -> voice id; OpenAI's names that are missing
                                                                            // here go to voices of a fitting gender
};

struct Catalog {
  std::string version;                       // of the server
  std::string model, model_title, license;   // of the manifest
  std::vector<CatalogVoice> voices;          // never empty
  std::string default_voice;                 // an id of `voices`
  std::uint32_t sample_rate = 24000;         // of the model, Hz; what a request gets when it names none
  engine::SamplingParams sampling;           // the model's defaults; max_steps is also the most a request may ask for
  std::uint32_t max_text_chars = 4000;       // code points
  std::uint32_t max_timeout_ms = 1'800'000;  // the most a request may ask for; also the default
  bool styles = false;                       // the front end understands style prompts
  bool refine = false;                       // the front end has a refine pass
  OpenAiAliases openai;
};

}  // namespace tts::api
