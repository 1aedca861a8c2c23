#include "tts/base/processors.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace tts {
namespace {

namespace fs = std::filesystem;

std::optional<double> first_number(const fs::path& path) {
  double number = 0;
  if (!(std::ifstream(path) >> number)) return std::nullopt;
  return number;
}

std::optional<double> quotient(double quota, double period) {
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> quota_of(const fs::path& group) {
  double quota = 0, period = 0;
  if (std::ifstream(group / "cpu.max") >> quota >> period) return quotient(quota, period);  // "max 100000" is no number
  return quotient(first_number(group / "cpu.cfs_quota_us").value_or(-1), first_number(group / "cpu.cfs_period_us").value_or(-1));
}

bool names_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const auto comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "cpu") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

std::uint32_t allowed_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&set));
  return std::max(std::thread::hardware_concurrency(), 1U);  // a machine with more processors than the set holds
}

}  // namespace

std::optional<double> granted_processors(const fs::path& mounted, std::string_view membership) {
  std::optional<double> least;
  std::istringstream lines{std::string(membership)};
  for (std::string line; std::getline(lines, line);) {  // hierarchy:controllers:/path
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !names_cpu(controllers)) continue;
    const fs::path top = mounted / controllers;  // version 2 names none
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (bool more = true; more; group = group.parent_path()) {
      more = !group.empty();
      if (const auto quota = quota_of(top / group)) least = std::min(least.value_or(*quota), *quota);
    }
  }
  return least;
}

std::uint32_t usable_processors() {
  const std::uint32_t allowed = allowed_processors();
  std::ostringstream membership;
  membership << std::ifstream("/proc/self/cgroup").rdbuf();
  const auto granted = granted_processors("/sys/fs/cgroup", membership.str());
  if (!granted || *granted >= allowed) return allowed;
  return std::max(static_cast<std::uint32_t>(*granted), 1U);
}

}  // namespace tts
