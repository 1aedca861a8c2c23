#pragma once
// Every module's options in one place, and where their values came from. Nothing below this module reads files or the environment.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tts/api/catalog.h"
#include "tts/model/model.h"
#include "tts/net/server.h"
#include "tts/observability/log.h"
#include "tts/scheduling/scheduler.h"
#include "tts/synthesis/synthesis.h"

namespace CLI {
class App;
}

namespace tts::config {

struct Config {
  net::ServerOptions server;
  std::chrono::milliseconds request_timeout{1'800'000};  // default and maximum of a request's timeout_ms
  std::chrono::milliseconds drain{20'000};               // how long running requests may finish after SIGTERM
  std::filesystem::path model_dir = "models/nano";       // see find_model
  model::ModelOptions model;
  scheduling::SchedulerOptions engine;
  synthesis::ServiceOptions synthesis;
  observability::LogOptions log;
  api::OpenAiAliases openai;
};

// From weakest to strongest: defaults, file, environment, flags.
struct Sources {
  std::optional<std::filesystem::path> file;       // must exist when given
  std::map<std::string, std::string> environment;  // TTS_<SECTION>_<NAME>; others are ignored
  std::map<std::string, std::string> flags;        // by key, "server.port"
};

struct LoadedConfig {
  Config config;
  std::map<std::string, std::string> origins;  // by key: "default", the file's path, the variable's or the flag's name
  std::vector<std::string> warnings;
};

// what() lists every problem found, one a line.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::vector<std::string> problems);
  const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  std::vector<std::string> problems_;
};

// Blocks while reading the file. Throws ConfigError with everything that is wrong with file, environment and flags together.
LoadedConfig load_config(const Sources& sources);

// The effective values, each with its origin, as indented JSON.
std::string describe(const LoadedConfig& loaded);

// What an empty configuration means, as the JSON a configuration file holds.
std::string default_file();

// Markdown table of all settings: key, default, range, meaning.
std::string settings_table();

// Adds one flag a setting of these sections (none = all) to `app`, grouped. Values that were given land in `flags`, which must live
// until parsing is over.
void add_flags(CLI::App& app, std::map<std::string, std::string>& flags, std::span<const std::string_view> sections = {});

// The environment of this process, as load_config wants it.
std::map<std::string, std::string> read_environment();

// The model's folder: `dir` itself when absolute, else the first that holds a manifest.json of ./dir, the source tree that the
// program was built in, and the places of an installation. `program` is the executable's own path. Throws ConfigError.
std::filesystem::path find_model(const std::filesystem::path& dir, const std::filesystem::path& program);

}  // namespace tts::config
