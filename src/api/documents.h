#pragma once
// The JSON documents that describe this server.

#include <span>
#include <string>

#include "tts/api/catalog.h"

#include "field_table.h"

namespace tts::api {

std::string voices_document(const Catalog& catalog);
std::string models_document(const Catalog& catalog);
std::string openapi_document(const Catalog& catalog, std::span<const Field> native, std::span<const Field> openai);

}  // namespace tts::api
