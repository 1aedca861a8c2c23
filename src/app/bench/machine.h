#pragma once
// What a figure was measured on.

#include <string>

#include <nlohmann/json.hpp>

namespace tts::bench {

struct Machine {
  std::string processor;     // as it names itself
  unsigned cores = 0;        // that this process may use
  std::string instructions;  // the extensions that matter to the model: "avx512_vnni amx_int8 …"
  double memory_gib = 0;
  std::string system;      // kernel and architecture
  double busy_before = 0;  // load average of the last minute, before anything of ours ran
};

Machine this_machine();

std::string describe(const Machine& machine);  // one line
nlohmann::ordered_json to_json(const Machine& machine);

struct Memory {
  double resident_mib = 0, peak_mib = 0;
};
Memory memory_of_this_process();

}  // namespace tts::bench
