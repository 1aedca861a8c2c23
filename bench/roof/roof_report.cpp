// What this machine can do at most, as JSON: the measure for every other figure. Takes about a second.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "roof.h"

namespace {

using nlohmann::ordered_json;
using namespace tts::bench;

// Far beyond any cache; the weights that a step reads are of this size.
constexpr std::size_t kBeyondCaches = std::size_t{768} << 20;

ordered_json peak(const PeakRate& rate) {
  return {{"instruction", rate.instruction}, {"giga_operations_per_s", std::round(rate.giga_operations)}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What this machine's memory and arithmetic can do at most, as JSON.", "roof_bench");
  std::uint32_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::string output;
  app.add_option("--threads", threads, "[one per core]")->check(CLI::Range(1, 256));
  app.add_option("-o,--output", output, "write it to this file as well");
  CLI11_PARSE(app, argc, argv);

  const ordered_json report{
      {"threads", threads},
      {"read_gb_per_s", std::round(read_bandwidth(threads, kBeyondCaches) * 10) / 10},
      {"peak", {{"float32", peak(peak_float32(threads))}, {"bfloat16", peak(peak_bfloat16(threads))}, {"int8", peak(peak_int8(threads))}}}};
  std::cout << report.dump(1) << '\n';
  if (output.empty()) return 0;
  std::ofstream file(output);
  file << report.dump(1) << '\n';
  if (!file.flush()) {
    std::cerr << "roof_bench: cannot write " << output << '\n';
    return 1;
  }
  return 0;
}
