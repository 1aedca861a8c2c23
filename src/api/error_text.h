#pragma once
// What all replies with errors have in common.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tts/base/result.h"

namespace tts::api {

// Causes of our own failures may hold file names and addresses; they belong in the log, and the message says where. request_id may be
// empty.
std::string message_for_client(const Error& error, std::string_view request_id);

// Text from clients can sit in messages; it was checked, but a reply must never fail over a byte.
std::string dump(const nlohmann::ordered_json& document);

}  // namespace tts::api
