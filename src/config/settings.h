#pragma once
// The table of settings: each name once, with its place in Config, its limits and its meaning.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tts/base/result.h"
#include "tts/config/config.h"

namespace tts::config {

enum class SettingKind { kText, kInteger, kNumber, kBoolean, kTextList, kIntegerList, kTextMap };

struct Setting {
  std::string section, name;
  std::string flag;  // "--port"
  SettingKind kind = SettingKind::kText;
  std::uint64_t min = 0, max = 0;                           // integers and the elements of integer lists
  double least = 0, most = 0;                               // numbers
  std::vector<std::string> choices{};                       // texts; empty = any
  std::string help;                                         // one line, units included
  std::function<void(Config&, const nlohmann::json&)> set;  // value has the kind and is in range
  std::function<nlohmann::json(const Config&)> get;

  std::string key() const { return section + "." + name; }
  std::string variable() const;  // TTS_SECTION_NAME
};

const std::vector<Setting>& settings();

// Text from the environment or the command line as a JSON value of the setting's kind: lists are comma-separated, maps are
// name=value pairs, comma-separated. The value is not checked.
Result<nlohmann::json> parse_text(const Setting& setting, std::string_view text);

// Kind, range and choices; the message says what is expected.
Status check_value(const Setting& setting, const nlohmann::json& value);

std::string range_text(const Setting& setting);

}  // namespace tts::config
