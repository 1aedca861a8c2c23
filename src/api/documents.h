#pragma once
// The JSON documents that describe this server.

#include <string>
#include <vector>

#include "tts/api/catalog.h"
#include "tts/api/speech_api.h"

#include "field_table.h"

namespace tts::api {

std::string voices_document(const Catalog& catalog);
std::string models_document(const Catalog& catalog);
std::string openapi_document(const Catalog& catalog, const std::vector<Field<SpeechCall>>& native,
                             const std::vector<Field<SpeechCall>>& openai);

}  // namespace tts::api
