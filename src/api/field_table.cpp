#include "field_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "tts/base/nearest_name.h"

#include "strict_json.h"

namespace tts::api {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kExactDoubles = 9007199254740992.0;  // 2^53

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string expectation(const FieldRules& field) {
  std::string text;
  switch (field.kind) {
    case FieldKind::kString: text = field.choices.empty() ? "a string" : "one of " + join(field.choices); break;
    case FieldKind::kInteger:
      if (!field.choices.empty()) {
        text = "one of " + join(field.choices);
      } else if (field.max > kExactDoubles) {
        text = "an unsigned 64-bit whole number";
      } else {
        text = fmt::format("a whole number from {:.0f} to {:.0f}", field.min, field.max);
      }
      break;
    case FieldKind::kNumber: text = fmt::format("a number from {} to {}", field.min, field.max); break;
    case FieldKind::kBoolean: text = "true or false"; break;
  }
  if (!field.or_word.empty()) text += " or '" + field.or_word + "'";
  if (!field.object_key.empty()) text += " or an object with the string '" + field.object_key + "'";
  return text;
}

// Whole numbers written as 3.0 count as integers, as in JSON Schema.
std::optional<json> as_integer(const json& value) {
  if (value.is_number_integer()) return value;
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  if (std::trunc(number) != number || std::abs(number) > kExactDoubles) return std::nullopt;
  return number < 0 ? json(static_cast<std::int64_t>(number)) : json(static_cast<std::uint64_t>(number));
}

std::optional<json> checked(const FieldRules& field, const json& value) {
  const auto in_range = [&](const json& number) { return number.get<double>() >= field.min && number.get<double>() <= field.max; };
  const auto is_choice = [&](const std::string& text) {
    return std::find(field.choices.begin(), field.choices.end(), text) != field.choices.end();
  };
  if (!field.or_word.empty() && value == field.or_word) return value;
  if (!field.object_key.empty() && value.is_object()) {
    if (value.size() != 1 || !value.contains(field.object_key) || !value.begin()->is_string()) return std::nullopt;
    return *value.begin();
  }
  switch (field.kind) {
    case FieldKind::kString:
      if (!value.is_string()) return std::nullopt;
      return field.choices.empty() || is_choice(value.get_ref<const std::string&>()) ? std::optional(value) : std::nullopt;
    case FieldKind::kInteger: {
      auto integer = as_integer(value);
      if (!integer) return std::nullopt;
      return (field.choices.empty() ? in_range(*integer) : is_choice(integer->dump())) ? integer : std::nullopt;
    }
    case FieldKind::kNumber: return value.is_number() && in_range(value) ? std::optional(value) : std::nullopt;
    case FieldKind::kBoolean: return value.is_boolean() ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

std::string shown(const json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  return value.is_string() ? in_quotes(value.get_ref<const std::string&>()) : value.dump();
}

bool printable_name(const std::string& name) {
  return !name.empty() && name.size() <= 40 && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  });
}

ordered_json value_schema(const FieldRules& field) {
  ordered_json schema;
  switch (field.kind) {
    case FieldKind::kString:
      if (field.choices.size() == 1) return {{"const", field.choices.front()}};
      schema["type"] = "string";
      if (!field.choices.empty()) schema["enum"] = field.choices;
      if (field.min > 0) schema["minLength"] = 1;  // the limits are in bytes, these in characters: they refuse nothing that is allowed
      if (field.max > 0) schema["maxLength"] = static_cast<std::uint64_t>(field.max);
      if (!field.pattern.empty()) schema["pattern"] = field.pattern;
      break;
    case FieldKind::kInteger:
      schema["type"] = "integer";
      if (!field.choices.empty()) {
        for (const auto& choice : field.choices) schema["enum"].push_back(std::stoull(choice));
        break;
      }
      schema["minimum"] = static_cast<std::uint64_t>(field.min);
      if (field.max < kExactDoubles) schema["maximum"] = static_cast<std::uint64_t>(field.max);
      break;
    case FieldKind::kNumber: schema = {{"type", "number"}, {"minimum", field.min}, {"maximum", field.max}}; break;
    case FieldKind::kBoolean: schema["type"] = "boolean"; break;
  }
  if (!field.or_word.empty()) return {{"oneOf", ordered_json::array({std::move(schema), {{"const", field.or_word}}})}};
  if (field.object_key.empty()) return schema;
  ordered_json object{{"type", "object"},
                      {"properties", {{field.object_key, {{"type", "string"}}}}},
                      {"required", {field.object_key}},
                      {"additionalProperties", false}};
  return {{"oneOf", ordered_json::array({std::move(schema), std::move(object)})}};
}

}  // namespace

Error invalid_field(std::string_view name, std::string message) {
  constexpr std::size_t kLongestParam = 64;
  return {.code = ErrorCode::kInvalidArgument,
          .message = std::move(message),
          .param = name.size() <= kLongestParam ? std::string(name) : "",
          .retry_after = {}};
}

Status check_unknown_fields(std::span<const FieldRules* const> table, const json& body, std::vector<std::string>* ignored) {
  std::vector<std::string_view> names;
  names.reserve(table.size());
  for (const auto* field : table) names.push_back(field->name);
  for (const auto& [name, value] : body.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (ignored != nullptr) {
      ignored->push_back(printable_name(name) ? "ignored unknown field " + name : "ignored a field with an unprintable name");
      continue;
    }
    const auto near = nearest_name(name, names);
    return invalid_field(name, "unknown field " + in_quotes(name) + (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
  }
  return Ok{};
}

Result<std::optional<json>> field_value(const FieldRules& field, const json& body) {
  const auto found = body.find(field.name);
  if (found == body.end() || found->is_null()) {
    if (field.required) return invalid_field(field.name, "'" + field.name + "' is required: " + expectation(field));
    return std::optional<json>();
  }
  auto value = checked(field, *found);
  if (!value) return invalid_field(field.name, "'" + field.name + "' must be " + expectation(field) + "; got " + shown(*found));
  if (value->is_string() && (field.kind == FieldKind::kString || !field.object_key.empty())) {
    const auto size = static_cast<double>(value->get_ref<const std::string&>().size());
    if (size < field.min) return invalid_field(field.name, "'" + field.name + "' may not be empty");
    if (field.max > 0 && size > field.max) {
      return invalid_field(field.name, fmt::format("'{}' may be at most {:.0f} bytes long", field.name, field.max));
    }
  }
  return value;
}

ordered_json fields_schema(std::span<const FieldRules* const> table, bool additional_properties) {
  ordered_json properties = ordered_json::object();
  auto required = ordered_json::array();
  for (const auto* field : table) {
    auto schema = value_schema(*field);
    if (!field->description.empty()) schema["description"] = field->description;
    if (!field->fallback.is_null()) schema["default"] = field->fallback;
    properties[field->name] = std::move(schema);
    if (field->required) required.push_back(field->name);
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", additional_properties}};
}

}  // namespace tts::api
