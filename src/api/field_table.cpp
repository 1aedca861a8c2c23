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

std::string expectation(const Field& field) {
  std::string text;
  switch (field.kind) {
    case FieldKind::kString: text = field.choices.empty() ? "a string" : "one of " + join(field.choices); break;
    case FieldKind::kInteger:
      if (field.max > kExactDoubles) return "an unsigned 64-bit whole number";
      text = fmt::format("a whole number from {:.0f} to {:.0f}", field.min, field.max);
      break;
    case FieldKind::kNumber: text = fmt::format("a number from {} to {}", field.min, field.max); break;
    case FieldKind::kBoolean: text = "true or false"; break;
  }
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

std::optional<json> checked(const Field& field, const json& value) {
  const auto in_range = [&](const json& number) { return number.get<double>() >= field.min && number.get<double>() <= field.max; };
  if (!field.object_key.empty() && value.is_object()) {
    if (value.size() != 1 || !value.contains(field.object_key) || !value.begin()->is_string()) return std::nullopt;
    return *value.begin();
  }
  switch (field.kind) {
    case FieldKind::kString:
      if (!value.is_string()) return std::nullopt;
      if (!field.choices.empty() &&
          std::find(field.choices.begin(), field.choices.end(), value.get_ref<const std::string&>()) == field.choices.end()) {
        return std::nullopt;
      }
      return value;
    case FieldKind::kInteger: {
      auto integer = as_integer(value);
      return integer && in_range(*integer) ? integer : std::nullopt;
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

Status check_unknown(std::span<const Field> table, const json& body, UnknownFields unknown, SpeechCall& call) {
  std::vector<std::string_view> names;
  for (const auto& field : table) names.push_back(field.name);
  for (const auto& [name, value] : body.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (unknown == UnknownFields::kWarn) {
      call.warnings.push_back(printable_name(name) ? "ignored unknown field " + name : "ignored a field with an unprintable name");
      continue;
    }
    const auto near = nearest_name(name, names);
    return invalid_field(name, "unknown field " + in_quotes(name) + (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
  }
  return Ok{};
}

ordered_json value_schema(const Field& field) {
  ordered_json schema;
  switch (field.kind) {
    case FieldKind::kString:
      schema["type"] = "string";
      if (!field.choices.empty()) schema["enum"] = field.choices;
      break;
    case FieldKind::kInteger:
      schema["type"] = "integer";
      schema["minimum"] = static_cast<std::uint64_t>(field.min);
      if (field.max < kExactDoubles) schema["maximum"] = static_cast<std::uint64_t>(field.max);
      break;
    case FieldKind::kNumber: schema = {{"type", "number"}, {"minimum", field.min}, {"maximum", field.max}}; break;
    case FieldKind::kBoolean: schema["type"] = "boolean"; break;
  }
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

Status apply_fields(std::span<const Field> table, const json& body, UnknownFields unknown, SpeechCall& call) {
  if (auto status = check_unknown(table, body, unknown, call); !status) return status;
  for (const auto& field : table) {
    const auto found = body.find(field.name);
    if (found == body.end() || found->is_null()) {
      if (field.required) return invalid_field(field.name, "'" + field.name + "' is required: " + expectation(field));
      continue;
    }
    const auto value = checked(field, *found);
    if (!value) return invalid_field(field.name, "'" + field.name + "' must be " + expectation(field) + "; got " + shown(*found));
    if (field.kind == FieldKind::kString && field.max > 0 && static_cast<double>(value->get_ref<const std::string&>().size()) > field.max) {
      return invalid_field(field.name, fmt::format("'{}' may be at most {:.0f} bytes long", field.name, field.max));
    }
    if (auto status = field.apply(*value, call); !status) return status;
  }
  return Ok{};
}

ordered_json fields_schema(std::span<const Field> table, bool additional_properties) {
  ordered_json properties = ordered_json::object();
  auto required = ordered_json::array();
  for (const auto& field : table) {
    auto schema = value_schema(field);
    schema["description"] = field.description;
    if (!field.fallback.is_null()) schema["default"] = field.fallback;
    properties[field.name] = std::move(schema);
    if (field.required) required.push_back(field.name);
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", additional_properties}};
}

}  // namespace tts::api
