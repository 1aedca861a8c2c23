#pragma once

#include <filesystem>
#include <string>

#include "tts/config/config.h"

#include "bench/session.h"

namespace tts::app {

struct BenchArguments {
  std::string url;        // empty = a server in this process
  std::string admin_url;  // of the server at `url`; empty = its metrics are not looked at
  bench::Plan plan;
  std::filesystem::path output, plot;  // JSON and SVG; empty = none
};

// Role `bench`: many listeners, and what each had to wait for. Returns the exit status: 1 when requests failed (refusals and silences are
// results, not errors). Throws std::runtime_error.
int bench(const BenchArguments& arguments, const config::LoadedConfig& loaded, const std::filesystem::path& program);

}  // namespace tts::app
