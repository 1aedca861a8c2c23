#pragma once
// Reading a JSON object field by field, noting every problem instead of stopping at the first.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace tts::engine {

using Problems = std::vector<std::string>;

// Parses strictly: no duplicate names, no NUL bytes, nesting at most `max_depth`. Problems go to `problems` and give null.
nlohmann::json parse_strict_json(std::string_view text, int max_depth, Problems& problems);

// A view of one object and its place in the document ("architecture.gpt"). A field that is missing or wrong adds a problem and
// yields the type's zero, so that reading can go on. `object` and `problems` must outlive the view.
class JsonFields {
 public:
  // A value that is not an object is noted, and then every field counts as missing without being noted again.
  JsonFields(const nlohmann::json* object, std::string where, Problems& problems);

  bool has(std::string_view name) const;
  JsonFields object(std::string_view name) const;
  std::span<const nlohmann::json> array(std::string_view name, std::size_t max_size) const;

  std::uint64_t integer(std::string_view name, std::uint64_t min, std::uint64_t max) const;
  std::uint32_t size(std::string_view name, std::uint32_t min, std::uint32_t max) const {
    return static_cast<std::uint32_t>(integer(name, min, max));
  }
  double number(std::string_view name, double min, double max) const;
  std::string text(std::string_view name, std::size_t max_bytes) const;  // not empty
  // One of `choices`, as its index; 0 when wrong.
  std::size_t choice(std::string_view name, std::span<const std::string_view> choices) const;

  const nlohmann::json* find(std::string_view name) const;  // noted when missing
  void note(std::string_view name, std::string_view problem) const;
  std::string path(std::string_view name) const;  // where.name
  Problems& problems() const noexcept { return problems_; }

 private:
  const nlohmann::json* object_;  // null: not an object
  std::string where_;
  Problems& problems_;
};

}  // namespace tts::engine
