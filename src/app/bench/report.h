#pragma once
// A run of the benchmark, for people, for programs and as pictures.

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "level.h"
#include "machine.h"

namespace tts::bench {

struct CapacityProbe {
  std::size_t streams = 0;
  double seconds = 0;
  std::string problem;  // empty = passed
};

struct Capacity {
  std::size_t streams = 0;
  double seconds = 0;          // that they ran without a silence
  std::optional<Level> level;  // the figures of that run; none when not even one stream passed
  std::vector<CapacityProbe> probes;
};

struct Report {
  std::string version, commit, build, date;
  Machine machine;
  std::string target;               // "in this process" or the URL
  nlohmann::ordered_json model;     // the server's own entry of GET /v1/models
  std::string precision;            // the engine's number formats; empty = not known
  nlohmann::ordered_json settings;  // of a server in this process: those that are not the defaults
  nlohmann::ordered_json workload;
  std::vector<Level> levels;
  std::optional<Capacity> capacity;
  std::optional<Memory> memory;  // of this process, server included
};

nlohmann::ordered_json to_json(const Report& report);

std::string heading(const Report& report);  // several lines: what is measured, where
std::string table_header();
std::string table_row(const Level& level);

std::string plot(const Report& report);  // SVG

}  // namespace tts::bench
