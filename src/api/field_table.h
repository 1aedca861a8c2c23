#pragma once
// One table of fields drives parsing, messages and the OpenAPI document of a dialect.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tts/api/speech_api.h"
#include "tts/base/result.h"

namespace tts::api {

enum class FieldKind { kString, kInteger, kNumber, kBoolean };

struct Field {
  std::string name{};
  FieldKind kind = FieldKind::kString;
  std::string description{};
  double min = 0, max = 0;             // numbers: closed range; strings: `max` bytes, 0 = no limit of its own
  std::vector<std::string> choices{};  // strings: the allowed values; empty = any
  std::string object_key{};            // also accepts {"<object_key>": string}; the string is what `apply` sees
  bool required = false;
  nlohmann::json fallback{};  // what an absent field means, for the document; null = depends
  std::function<Status(const nlohmann::json& value, SpeechCall& call)> apply{};  // sees only values that passed the checks above
};

enum class UnknownFields { kReject, kWarn };

// Applies every field of `body` in table order. null counts as absent.
Status apply_fields(std::span<const Field> table, const nlohmann::json& body, UnknownFields unknown, SpeechCall& call);

// JSON Schema of an object with these fields.
nlohmann::ordered_json fields_schema(std::span<const Field> table, bool additional_properties);

Error invalid_field(std::string_view name, std::string message);

}  // namespace tts::api
