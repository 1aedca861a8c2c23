#include "machine.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

namespace tts::bench {
namespace {

constexpr std::array<std::string_view, 9> kInstructions{"avx2",        "fma",      "avx512f",  "avx512_vnni", "avx512_bf16",
                                                        "avx512_fp16", "avx_vnni", "amx_bf16", "amx_int8"};

// Value of the first line "name : value" of a file of the kernel's; empty when there is none.
std::string line_value(const char* file, std::string_view name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(name)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

double mib_value(const char* file, std::string_view name) { return std::strtod(line_value(file, name).c_str(), nullptr) / 1024; }

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.processor = line_value("/proc/cpuinfo", "model name");
  machine.cores = usable_cores();
  std::istringstream flags(line_value("/proc/cpuinfo", "flags"));
  for (std::string flag; flags >> flag;) {
    for (const auto known : kInstructions) {
      if (flag == known) machine.instructions.append(machine.instructions.empty() ? "" : " ").append(flag);
    }
  }
  machine.memory_gib = std::round(mib_value("/proc/meminfo", "MemTotal") / 1024 * 10) / 10;
  if (utsname name{}; uname(&name) == 0) machine.system = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  if (double average = 0; getloadavg(&average, 1) == 1) machine.busy_before = std::round(average * 100) / 100;
  return machine;
}

std::string describe(const Machine& machine) {
  return fmt::format("{}, {} core{} ({}), {:.0f} GiB, {}", machine.processor, machine.cores, machine.cores == 1 ? "" : "s",
                     machine.instructions, machine.memory_gib, machine.system);
}

nlohmann::ordered_json to_json(const Machine& machine) {
  return {{"processor", machine.processor},   {"cores", machine.cores},   {"instructions", machine.instructions},
          {"memory_gib", machine.memory_gib}, {"system", machine.system}, {"load_average_before", machine.busy_before}};
}

Memory memory_of_this_process() {
  return {.resident_mib = mib_value("/proc/self/status", "VmRSS"), .peak_mib = mib_value("/proc/self/status", "VmHWM")};
}

}  // namespace tts::bench
