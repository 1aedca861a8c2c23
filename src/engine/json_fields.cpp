#include "json_fields.h"

#include <cmath>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tts::engine {

using nlohmann::json;

namespace {

template <class Number>
std::string range_text(Number min, Number max) {
  std::ostringstream text;
  text << "must be a number from " << min << " to " << max;
  return text.str();
}

}  // namespace

json parse_strict_json(std::string_view text, int max_depth, Problems& problems) {
  // The library takes NUL for the end of its input, which would hide whatever follows.
  if (text.find('\0') != std::string_view::npos) {
    problems.emplace_back("holds a NUL byte");
    return nullptr;
  }
  std::vector<std::set<std::string>> names;
  const auto callback = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > max_depth) throw std::runtime_error("nested too deeply");
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second) {
      throw std::runtime_error("the name '" + parsed.get<std::string>().substr(0, 100) + "' occurs twice in one object");
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), callback);
  } catch (const json::exception& error) {
    problems.push_back(std::string("not valid JSON: ") + error.what());
  } catch (const std::runtime_error& error) {
    problems.emplace_back(error.what());
  }
  return nullptr;
}

JsonFields::JsonFields(const json* object, std::string where, Problems& problems)
    : object_(object != nullptr && object->is_object() ? object : nullptr), where_(std::move(where)), problems_(problems) {
  if (object != nullptr && object_ == nullptr) problems_.push_back((where_.empty() ? "the document" : where_) + ": must be an object");
}

std::string JsonFields::path(std::string_view name) const { return where_.empty() ? std::string(name) : where_ + "." + std::string(name); }

void JsonFields::note(std::string_view name, std::string_view problem) const {
  problems_.push_back(path(name) + ": " + std::string(problem));
}

bool JsonFields::has(std::string_view name) const { return object_ != nullptr && object_->contains(name); }

const json* JsonFields::find(std::string_view name) const {
  if (object_ == nullptr) return nullptr;
  const auto found = object_->find(name);
  if (found != object_->end()) return &*found;
  note(name, "is missing");
  return nullptr;
}

JsonFields JsonFields::object(std::string_view name) const { return {find(name), path(name), problems_}; }

std::span<const json> JsonFields::array(std::string_view name, std::size_t max_size) const {
  const json* const value = find(name);
  if (value == nullptr) return {};
  if (!value->is_array() || value->size() > max_size) {
    note(name, "must be an array of at most " + std::to_string(max_size) + " elements");
    return {};
  }
  return value->get_ref<const json::array_t&>();
}

std::uint64_t JsonFields::integer(std::string_view name, std::uint64_t min, std::uint64_t max) const {
  const json* const value = find(name);
  if (value == nullptr) return 0;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() < min || value->get<std::uint64_t>() > max) {
    note(name, range_text(min, max) + " without fraction");
    return 0;
  }
  return value->get<std::uint64_t>();
}

double JsonFields::number(std::string_view name, double min, double max) const {
  const json* const value = find(name);
  if (value == nullptr) return 0;
  const double parsed = value->is_number() ? value->get<double>() : std::nan("");
  if (!(parsed >= min && parsed <= max)) {
    note(name, range_text(min, max));
    return 0;
  }
  return parsed;
}

std::string JsonFields::text(std::string_view name, std::size_t max_bytes) const {
  const json* const value = find(name);
  if (value == nullptr) return {};
  if (!value->is_string() || value->get_ref<const std::string&>().empty() || value->get_ref<const std::string&>().size() > max_bytes) {
    note(name, "must be a text of 1 to " + std::to_string(max_bytes) + " bytes");
    return {};
  }
  return value->get<std::string>();
}

std::size_t JsonFields::choice(std::string_view name, std::span<const std::string_view> choices) const {
  const json* const value = find(name);
  if (value == nullptr) return 0;
  std::string listed;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (value->is_string() && value->get_ref<const std::string&>() == choices[i]) return i;
    listed.append(i > 0 ? ", '" : "'").append(choices[i]).append("'");
  }
  note(name, "must be one of " + listed);
  return 0;
}

}  // namespace tts::engine
