#include <algorithm>

#include <CLI/CLI.hpp>

#include "tts/config/config.h"

#include "settings.h"

namespace tts::config {
namespace {

std::string group_of(const std::string& section) {
  if (section == "server") return "Server";
  if (section == "admin") return "Probes and metrics";
  if (section == "model" || section == "engine") return "Model and engine";
  if (section == "stream") return "WebSocket streaming";
  if (section == "synthesis") return "Synthesis";
  if (section == "log") return "Log";
  return "OpenAI compatibility";
}

std::string value_name(const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::kText: return setting.choices.empty() ? "TEXT" : "NAME";
    case SettingKind::kInteger: return "N";
    case SettingKind::kNumber: return "X";
    case SettingKind::kBoolean: return "true|false";
    case SettingKind::kTextList: return "A,B";
    case SettingKind::kIntegerList: return "N,N";
    case SettingKind::kTextMap: return "A=B,C=D";
  }
  return {};
}

std::string shown(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.empty() ? "" : value.dump();
  std::string text;
  for (const auto& element : value) {
    if (!text.empty()) text += ',';
    text += shown(element);
  }
  return text;
}

}  // namespace

void add_flags(CLI::App& app, std::map<std::string, std::string>& flags, std::span<const std::string_view> sections) {
  const Config defaults;
  for (const auto& setting : settings()) {
    if (!sections.empty() && std::find(sections.begin(), sections.end(), setting.section) == sections.end()) continue;
    const auto fallback = shown(setting.get(defaults));
    const auto help = setting.help + (fallback.empty() ? "" : " [" + fallback + "]");
    app.add_option_function<std::string>(
           setting.flag, [&flags, key = setting.key()](const std::string& value) { flags[key] = value; }, help)
        ->type_name(value_name(setting))
        ->group(group_of(setting.section));
  }
}

}  // namespace tts::config
