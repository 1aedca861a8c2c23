#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tts/config/config.h"

namespace tts::app {

struct SayArguments {
  std::optional<std::string> text;  // unset = read standard input
  std::string output;  // file, or "-" for standard output
  std::string format;  // empty = from the file's extension; "wav" for standard output
  std::optional<std::string> voice;
  std::optional<double> speed;
  std::optional<std::uint64_t> seed;
};

// Role `say`: text to a file without a server. Figures go to standard error. Returns the exit status. Throws std::runtime_error.
int say(const SayArguments& arguments, const config::Config& config, const std::filesystem::path& program);

}  // namespace tts::app
