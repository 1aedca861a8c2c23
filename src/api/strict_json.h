#pragma once
// RFC 8259 with the doors closed: bounded depth, keys and elements, no duplicate keys, no NUL, strict UTF-8, finite numbers.

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tts/base/result.h"

namespace tts::api {

struct JsonLimits {
  std::size_t max_depth = 16;       // nested arrays and objects
  std::size_t max_keys = 64;        // of all objects together
  std::size_t max_elements = 1024;  // of all arrays together
};

// kInvalidArgument with line and column for malformed text; the top level must be an object. `noun` is what messages call the text.
Result<nlohmann::json> parse_strict_json_object(std::string_view text, const JsonLimits& limits = {}, std::string_view noun = "body");

// A client's name, short enough and safe to repeat in a message.
std::string in_quotes(std::string_view name);

}  // namespace tts::api
