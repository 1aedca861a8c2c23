#pragma once
// One table of fields drives parsing, messages and the schema of what clients send.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tts/base/result.h"

namespace tts::api {

enum class FieldKind { kString, kInteger, kNumber, kBoolean };

// What a value may be.
struct FieldRules {
  std::string name{};
  FieldKind kind = FieldKind::kString;
  std::string description{};
  double min = 0, max = 0;             // numbers: closed range; strings: bytes, where a `max` of 0 is no limit of its own
  std::vector<std::string> choices{};  // strings, and whole numbers as they are written: the allowed values; empty = any
  std::string pattern{};               // strings, for the schema: what `apply` makes sure of
  std::string or_word{};               // also accepts this string
  std::string object_key{};            // also accepts {"<object_key>": string}; the string is what `apply` sees
  bool required = false;
  nlohmann::json fallback{};           // what an absent field means, for the schema; null = depends
};

// ... and where it goes in a Target.
template <class Target>
struct Field : FieldRules {
  std::function<Status(const nlohmann::json& value, Target& target)> apply;  // sees only values that passed the rules
};

template <class Row>  // Row: FieldRules or a Field
std::vector<const FieldRules*> rules_of(const std::vector<Row>& table) {
  std::vector<const FieldRules*> rules;
  rules.reserve(table.size());
  for (const auto& row : table) rules.push_back(&row);
  return rules;
}

// Fields of `body` that are not in the table: named in `ignored`, or an error when that is null.
Status check_unknown_fields(std::span<const FieldRules* const> table, const nlohmann::json& body, std::vector<std::string>* ignored);

// The value of one field, checked; nullopt = absent, as null is.
Result<std::optional<nlohmann::json>> field_value(const FieldRules& field, const nlohmann::json& body);

// Applies every field of `body` in table order. Unknown ones: see check_unknown_fields.
template <class Target>
Status apply_fields(const std::vector<Field<Target>>& table, const nlohmann::json& body, std::vector<std::string>* ignored,
                    Target& target) {
  if (auto status = check_unknown_fields(rules_of(table), body, ignored); !status) return status;
  for (const auto& field : table) {
    const auto value = field_value(field, body);
    if (!value) return value.error();
    if (!value->has_value()) continue;
    if (auto status = field.apply(**value, target); !status) return status;
  }
  return Ok{};
}

// JSON Schema of an object with these fields.
nlohmann::ordered_json fields_schema(std::span<const FieldRules* const> table, bool additional_properties);

// The param of an error is the field's name, or empty where that is too long to be one.
Error invalid_field(std::string_view name, std::string message);

}  // namespace tts::api
