#pragma once
// As much of JSON Schema as the protocol's schema uses; a keyword that is not known here fails.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tts/base/utf8.h"

namespace tts::api {

class SchemaChecker {
 public:
  explicit SchemaChecker(nlohmann::json root) : root_(std::move(root)) {}

  // What is wrong with `value`; empty = nothing. `definition`: a name under $defs; empty = the whole schema.
  std::vector<std::string> problems(const nlohmann::json& value, const std::string& definition = "") const {
    std::vector<std::string> found;
    check(definition.empty() ? root_ : root_.at("$defs").at(definition), value, "value", found);
    return found;
  }

 private:
  using json = nlohmann::json;

  void check(const json& schema, const json& value, const std::string& at, std::vector<std::string>& found) const {
    for (const auto& [keyword, rule] : schema.items()) {
      if (!check_keyword(keyword, rule, schema, value, at, found)) found.push_back(at + ": " + keyword + " " + rule.dump());
    }
  }

  bool check_keyword(const std::string& keyword, const json& rule, const json& schema, const json& value, const std::string& at,
                     std::vector<std::string>& found) const {
    // `pattern` needs a regular expression of code points; the tests in Python look at it.
    for (const auto* about : {"$schema", "$defs", "title", "description", "default", "pattern"}) {
      if (keyword == about) return true;
    }
    if (keyword == "$ref") {
      check(root_.at(json::json_pointer(rule.get<std::string>().substr(1))), value, at, found);
      return true;
    }
    if (keyword == "oneOf") {
      int fitting = 0;
      for (const auto& choice : rule) {
        std::vector<std::string> problems;
        check(choice, value, at, problems);
        fitting += problems.empty() ? 1 : 0;
      }
      return fitting == 1;
    }
    if (keyword == "type") return is_a(rule.get<std::string>(), value);
    if (keyword == "const") return value == rule;
    if (keyword == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
    if (keyword == "minimum") return !value.is_number() || value.get<double>() >= rule.get<double>();
    if (keyword == "maximum") return !value.is_number() || value.get<double>() <= rule.get<double>();
    if (keyword == "minLength") return !value.is_string() || length(value) >= rule.get<std::size_t>();
    if (keyword == "maxLength") return !value.is_string() || length(value) <= rule.get<std::size_t>();
    if (keyword == "minProperties") return !value.is_object() || value.size() >= rule.get<std::size_t>();
    if (keyword == "required") {
      for (const auto& name : rule) {
        if (value.is_object() && !value.contains(name.get<std::string>())) found.push_back(at + " lacks " + name.dump());
      }
      return true;
    }
    if (keyword == "properties") {
      for (const auto& [name, property] : rule.items()) {
        if (value.is_object() && value.contains(name)) check(property, value.at(name), at + "." + name, found);
      }
      return true;
    }
    if (keyword == "additionalProperties" && rule == false) {
      if (!value.is_object()) return true;
      for (const auto& [name, part] : value.items()) {
        if (!schema.at("properties").contains(name)) found.push_back(at + " has an unknown " + name);
      }
      return true;
    }
    if (keyword == "items") {
      if (!value.is_array()) return true;
      for (const auto& item : value) check(rule, item, at + "[]", found);
      return true;
    }
    found.push_back("the schema uses " + keyword + ", which is not known here");
    return true;
  }

  static bool is_a(const std::string& type, const json& value) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "number") return value.is_number();
    if (type != "integer") return false;
    return value.is_number_integer() || (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
  }

  static std::size_t length(const json& value) { return count_code_points(value.get_ref<const std::string&>()); }

  json root_;
};

}  // namespace tts::api
