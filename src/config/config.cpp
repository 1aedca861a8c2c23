#include "tts/config/config.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tts/base/nearest_name.h"

#include "settings.h"

namespace tts::config {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::uintmax_t kMaxFileBytes = 1024 * 1024;
constexpr std::string_view kVariablePrefix = "TTS_";

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) {
    if (!text.empty()) text += '\n';
    text += line;
  }
  return text;
}

// Collects values and problems of all sources before anything is decided.
class Loader {
 public:
  Loader() {
    for (const auto& setting : settings()) loaded_.origins[setting.key()] = "default";
  }

  void read_file(const fs::path& path) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    std::ifstream stream(path, std::ios::binary);
    if (error || !stream) return problem("cannot read the configuration file " + path.string());
    if (size > kMaxFileBytes) return problem(path.string() + " is larger than a configuration file can be");
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    json document;
    try {
      document = json::parse(text);
    } catch (const json::parse_error& cause) {
      return problem(path.string() + ": " + cause.what());
    }
    if (!document.is_object()) return problem(path.string() + ": must hold a JSON object");
    for (const auto& [section, values] : document.items()) read_section(path.string(), section, values);
  }

  void read_environment(const std::map<std::string, std::string>& environment) {
    for (const auto& setting : settings()) {
      const auto found = environment.find(setting.variable());
      if (found == environment.end()) continue;
      // Kubernetes sets such variables for a Service that happens to be called like one of our sections.
      if (found->second.starts_with("tcp://") || found->second.starts_with("udp://")) {
        loaded_.warnings.push_back("ignored " + found->first + "=" + found->second + ": it looks like a Kubernetes service link");
        continue;
      }
      apply_text(setting, found->second, found->first);
    }
    warn_about_typos(environment);
  }

  void read_flags(const std::map<std::string, std::string>& flags) {
    for (const auto& setting : settings()) {
      if (const auto found = flags.find(setting.key()); found != flags.end()) apply_text(setting, found->second, setting.flag);
    }
  }

  LoadedConfig finish() {
    derive();
    cross_check();
    if (!problems_.empty()) throw ConfigError(std::move(problems_));
    return std::move(loaded_);
  }

 private:
  void problem(std::string text) { problems_.push_back(std::move(text)); }

  void read_section(const std::string& where, const std::string& section, const json& values) {
    std::vector<std::string_view> sections, names;
    for (const auto& setting : settings()) {
      if (std::find(sections.begin(), sections.end(), setting.section) == sections.end()) sections.push_back(setting.section);
      if (setting.section == section) names.push_back(setting.name);
    }
    if (names.empty()) return problem(where + ": unknown section '" + section + "'" + hint(section, sections));
    if (!values.is_object()) return problem(where + ": the section '" + section + "' must be a JSON object");
    for (const auto& [name, value] : values.items()) {
      const auto setting =
          std::find_if(settings().begin(), settings().end(), [&](const Setting& s) { return s.section == section && s.name == name; });
      if (setting == settings().end()) {
        problem(where + ": unknown setting '" + section + "." + name + "'" + hint(name, names));
      } else {
        apply(*setting, value, where);
      }
    }
  }

  static std::string hint(std::string_view name, const std::vector<std::string_view>& known) {
    const auto near = nearest_name(name, known);
    return near.empty() ? "" : "; did you mean '" + std::string(near) + "'?";
  }

  void warn_about_typos(const std::map<std::string, std::string>& environment) {
    std::vector<std::string> variables;
    for (const auto& setting : settings()) variables.push_back(setting.variable());
    const std::vector<std::string_view> known(variables.begin(), variables.end());
    for (const auto& [name, value] : environment) {
      if (!name.starts_with(kVariablePrefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
      // Other programs use the prefix too, so only what is nearly ours is worth a word.
      if (const auto near = nearest_name(name, known); !near.empty()) {
        loaded_.warnings.push_back("the environment variable " + name + " is not known; did you mean " + std::string(near) + "?");
      }
    }
  }

  void apply_text(const Setting& setting, std::string_view text, const std::string& origin) {
    const auto value = parse_text(setting, text);
    if (!value) return problem(setting.key() + " (" + origin + ") " + value.error().message);
    apply(setting, *value, origin);
  }

  void apply(const Setting& setting, const json& value, const std::string& origin) {
    if (const auto status = check_value(setting, value); !status)
      return problem(setting.key() + " (" + origin + ") " + status.error().message);
    setting.set(loaded_.config, value);
    loaded_.origins[setting.key()] = origin;
  }

  // What follows from settings rather than being one.
  void derive() {
    auto& config = loaded_.config;
    config.model.max_slots = config.engine.max_batch;
    config.model.max_prefill_rows = std::max(config.model.max_prefill_rows, config.engine.prefill_chunk);
    config.model.max_decode_steps = std::max(config.model.max_decode_steps, config.engine.chunk_steps);
    for (const auto steps : config.engine.chunk_ramp) config.model.max_decode_steps = std::max(config.model.max_decode_steps, steps);
    const auto admin = config.server.admin;
    config.server.admin = config.server.http;  // limits of bytes and times are shared
    config.server.admin.host = admin.host;
    config.server.admin.port = admin.port;
    config.server.admin.max_connections = admin.max_connections;
    config.server.admin.cors_origin.clear();
    config.server.admin.reuse_port = false;  // which of several processes answers a probe must not be chance
  }

  void cross_check() {
    const auto& config = loaded_.config;
    const auto& http = config.server.http;
    const auto& admin = config.server.admin;
    if (http.port != 0 && http.port == admin.port) problem("server.port and admin.port are both " + std::to_string(http.port));
    if (config.synthesis.log.low_water_bytes > config.synthesis.log.high_water_bytes) {
      problem("synthesis.low_water_bytes (" + std::to_string(config.synthesis.log.low_water_bytes) +
              ") exceeds synthesis.high_water_bytes (" + std::to_string(config.synthesis.log.high_water_bytes) + ")");
    }
    const auto& origin = http.cors_origin;
    if (origin.find_first_of("\r\n") != std::string::npos) problem("server.cors_origin must be one line");
  }

  LoadedConfig loaded_;
  std::vector<std::string> problems_;
};

std::string shown_default(const json& value) {
  if (value.is_object() && value.empty()) return "{}";
  return value.dump();
}

}  // namespace

ConfigError::ConfigError(std::vector<std::string> problems) : std::runtime_error(join_lines(problems)), problems_(std::move(problems)) {}

LoadedConfig load_config(const Sources& sources) {
  Loader loader;
  if (sources.file) loader.read_file(*sources.file);
  loader.read_environment(sources.environment);
  loader.read_flags(sources.flags);
  return loader.finish();
}

std::string describe(const LoadedConfig& loaded) {
  ordered_json document;
  for (const auto& setting : settings()) {
    document[setting.section][setting.name] = {{"value", setting.get(loaded.config)}, {"source", loaded.origins.at(setting.key())}};
  }
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string default_file() {
  const Config defaults;
  ordered_json document;
  for (const auto& setting : settings()) document[setting.section][setting.name] = setting.get(defaults);
  return document.dump(2) + "\n";
}

std::string settings_table() {
  const Config defaults;
  std::string text = "| setting | default | value | meaning |\n|---|---|---|---|\n";
  for (const auto& setting : settings()) {
    text += "| `" + setting.key() + "` | `" + shown_default(setting.get(defaults)) + "` | " + range_text(setting) + " | " + setting.help +
            " |\n";
  }
  return text;
}

std::map<std::string, std::string> read_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (text.starts_with(kVariablePrefix) && equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

fs::path find_model(const fs::path& dir, const fs::path& program) {
  std::vector<fs::path> places;
  if (dir.is_absolute()) {
    places = {dir};
  } else {
    const auto beside = program.parent_path();  // <source tree>/build/<preset>/bin, or <prefix>/bin
    const auto under_models = dir.has_parent_path() ? dir : fs::path("models") / dir;
    for (const auto& base :
         std::array<fs::path, 4>{fs::path(), beside / "../../..", beside / "../share/chattts-server", "/usr/share/chattts-server"}) {
      places.push_back(base / under_models);
    }
    if (!dir.has_parent_path()) places.insert(places.begin(), dir);
  }
  std::vector<std::string> problems{"no model in '" + dir.string() + "': none of these has a manifest.json"};
  for (const auto& place : places) {
    std::error_code error;
    if (fs::is_regular_file(place / "manifest.json", error)) return fs::weakly_canonical(place);
    problems.push_back("  " + fs::absolute(place).lexically_normal().string());
  }
  throw ConfigError(std::move(problems));
}

}  // namespace tts::config
