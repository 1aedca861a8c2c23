#pragma once

#include <filesystem>

#include "tts/config/config.h"

namespace tts::app {

// Role `serve`: everything in one process, until SIGTERM or SIGINT. Returns the exit status: 0 after a drain, 1 when requests had to
// be cut. Throws std::runtime_error when it cannot start. `program` is the path of the executable.
int serve(const config::Config& config, const std::filesystem::path& program);

}  // namespace tts::app
