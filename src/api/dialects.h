#pragma once
// The two bodies that ask for speech, as tables over one catalog.

#include <map>
#include <string>
#include <vector>

#include "tts/api/catalog.h"
#include "tts/api/speech_api.h"

#include "field_table.h"

namespace tts::api {

// Tables keep a pointer to the catalog, which must outlive them.
std::vector<Field<SpeechCall>> native_fields(const Catalog& catalog);
std::vector<Field<SpeechCall>> openai_fields(const Catalog& catalog, const std::map<std::string, std::string>& voice_aliases);

// Every OpenAI voice name, mapped to a voice of this model. Throws std::invalid_argument for a configured alias without a voice.
std::map<std::string, std::string> resolve_voice_aliases(const Catalog& catalog);

// What a request is before its first field is applied.
SpeechCall default_call(const Catalog& catalog, audio::Container container);

// Checks that need several fields: rate against container, bitrate against container, steps against each other.
Status check_call(const SpeechCall& call, const Catalog& catalog);

}  // namespace tts::api
