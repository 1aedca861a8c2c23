#pragma once
// The JSON Schema of the WebSocket protocol.

#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace tts::api {

struct SchemaOfMessage {
  std::string type;
  nlohmann::ordered_json schema;
};

nlohmann::ordered_json described_schema(std::string description, nlohmann::ordered_json schema);

// The whole document; the server's messages are added to those of clients.
std::string stream_schema(std::span<const SchemaOfMessage> from_client);

}  // namespace tts::api
