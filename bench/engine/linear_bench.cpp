// Every matrix of one language-model step, once, with what goes with it (rounding of the inputs, SwiGLU, residual sums): our linears in
// every format beside libtorch's, and beside what this machine's memory and instructions allow.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "ops/compute_pool.h"
#include "ops/linear.h"
#include "ops/linear_input.h"
#include "ops/tile_kernels.h"
#include "roof.h"
#include "torch_linears.h"

namespace {

using namespace tts;
using namespace tts::model;

struct Model {
  const char* name;
  std::size_t hidden, inner, layers;
};
constexpr Model kModels[] = {{"nano", 256, 768, 8}, {"full", 768, 3072, 20}};
constexpr std::size_t kCodes = 4 * 626;

std::vector<bench::Matrix> matrices(const Model& model) {
  std::vector<bench::Matrix> result;
  for (std::size_t i = 0; i < model.layers; ++i) {
    result.insert(
        result.end(),
        {{3 * model.hidden, model.hidden}, {model.hidden, model.hidden}, {2 * model.inner, model.hidden}, {model.hidden, model.inner}});
  }
  result.push_back({kCodes, model.hidden});
  return result;
}

std::vector<float> random_values(std::size_t n, float range) {
  static std::minstd_rand engine;
  std::uniform_real_distribution<float> distribution(-range, range);
  std::vector<float> values(n);
  for (float& value : values) value = distribution(engine);
  return values;
}

class OurLinears {
 public:
  OurLinears(const Model& model, ops::WeightFormat format, std::size_t max_rows)
      : model_(model),
        x_(format, max_rows, model.hidden, true),
        inner_(format, max_rows, model.inner, true),
        qkv_(max_rows * 3 * model.hidden),
        residual_(max_rows * model.hidden),
        logits_(max_rows * kCodes) {
    const auto linear = [&](std::size_t outputs, std::size_t inputs) {
      return ops::make_linear(format, random_values(outputs * inputs, 0.05F).data(), outputs, inputs);
    };
    for (std::size_t i = 0; i < model.layers; ++i) {
      layers_.push_back({linear(3 * model.hidden, model.hidden), linear(model.hidden, model.hidden),
                         ops::make_gate_up(format, random_values(model.inner * model.hidden, 0.05F).data(),
                                           random_values(model.inner * model.hidden, 0.05F).data(), model.inner, model.hidden),
                         linear(model.hidden, model.inner)});
    }
    head_ = linear(kCodes, model.hidden);
    const auto values = random_values(max_rows * model.hidden, 1.0F);
    std::copy(values.begin(), values.end(), x_.row(0));
  }

  std::size_t weight_bytes() const {
    std::size_t bytes = head_->weight_bytes();
    for (const Layer& layer : layers_) {
      bytes += layer.qkv->weight_bytes() + layer.output->weight_bytes() + layer.gate_up->weight_bytes() + layer.down->weight_bytes();
    }
    return bytes;
  }

  void pass(ops::ComputePool& pool, std::size_t rows) {
    const ops::MutableRows residual{residual_.data(), model_.hidden};
    for (const Layer& layer : layers_) {
      x_.commit(pool, rows);
      layer.qkv->forward(pool, {x_, rows}, ops::MutableRows{qkv_.data(), 3 * model_.hidden});
      x_.commit(pool, rows);
      layer.output->forward_add(pool, {x_, rows}, residual);
      x_.commit(pool, rows);
      layer.gate_up->forward(pool, {x_, rows}, inner_, ops::Activation::kSwiGlu);
      layer.down->forward_add(pool, {inner_, rows}, residual);
    }
    x_.commit(pool, rows);
    head_->forward(pool, {x_, rows}, ops::MutableRows{logits_.data(), kCodes});
  }

 private:
  struct Layer {
    std::unique_ptr<const ops::Linear> qkv, output, gate_up, down;
  };
  Model model_;
  std::vector<Layer> layers_;
  std::unique_ptr<const ops::Linear> head_;
  ops::LinearInput x_, inner_;
  std::vector<float> qkv_, residual_, logits_;
};

// One line of the table.
struct Way {
  std::string name;
  std::size_t bytes = 0;  // of weights
  double peak = 0.0;      // 1e9 operations a second of its instruction; 0 = not compared
  std::function<void()> pass;
  int batch_invariant = 1;
  std::vector<double> times;  // ms
};

double time_of(const std::function<void()>& fn) {
  const auto begin = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

const char* name_of(ops::WeightFormat format) {
  switch (format) {
    case ops::WeightFormat::kFloat32: return "fp32";
    case ops::WeightFormat::kBfloat16: return "bf16";
    case ops::WeightFormat::kInt8: return "int8";
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time of all matrices of one language-model step, per format and number of rows, beside libtorch and the machine's limits");
  std::vector<std::string> models{"nano", "full"}, formats{"fp32", "bf16", "int8"};
  std::vector<std::size_t> rows_list{1, 4, 8, 16, 64, 512};
  std::uint32_t threads = 2;
  double seconds = 1.0;
  bool with_torch = true, all_kernels = false;
  std::string json_path;
  app.add_option("--models", models, "nano, full")->delimiter(',')->capture_default_str();
  app.add_option("--formats", formats, "fp32, bf16, int8")->delimiter(',')->capture_default_str();
  app.add_option("--rows", rows_list, "numbers of rows")->delimiter(',')->capture_default_str();
  app.add_option("--threads", threads, "threads")->capture_default_str();
  app.add_option("--seconds", seconds, "time for each line of the table")->capture_default_str();
  app.add_flag("!--no-torch", with_torch, "leave libtorch out");
  app.add_flag("--all-kernels", all_kernels, "every kernel that this processor can run, not the chosen ones only");
  app.add_option("--json", json_path, "also write the figures to this file");
  CLI11_PARSE(app, argc, argv);

  nlohmann::json report{{"threads", threads}, {"lines", nlohmann::json::array()}};
  const std::map<std::string, bench::PeakRate> peaks{
      {"fp32", bench::peak_float32(threads)}, {"bf16", bench::peak_bfloat16(threads)}, {"int8", bench::peak_int8(threads)}};
  for (const auto& [format, peak] : peaks) {
    std::printf("peak %s: %.0f GOP/s (%s, %u threads)\n", format.c_str(), peak.giga_operations, peak.instruction, threads);
    report["peak_gops"][format] = {{"instruction", peak.instruction}, {"gops", peak.giga_operations}};
  }

  ops::ComputePool pool(threads);
  for (const Model& model : kModels) {
    if (std::find(models.begin(), models.end(), model.name) == models.end()) continue;
    double weights = 0;
    for (const bench::Matrix& m : matrices(model)) weights += static_cast<double>(m.outputs * m.inputs);
    const std::size_t max_rows = *std::max_element(rows_list.begin(), rows_list.end());
    std::map<std::string, std::unique_ptr<OurLinears>> ours;
    std::map<std::string, double> bandwidth;  // GB/s over a set as large as the weights
    for (const ops::WeightFormat format : {ops::WeightFormat::kFloat32, ops::WeightFormat::kBfloat16, ops::WeightFormat::kInt8}) {
      const std::string name = name_of(format);
      if (std::find(formats.begin(), formats.end(), name) == formats.end()) continue;
      ours[name] = std::make_unique<OurLinears>(model, format, max_rows);
      bandwidth[name] = bench::read_bandwidth(threads, ours[name]->weight_bytes());
      std::printf("%s %s: %.1f MB of weights, read at %.1f GB/s\n", model.name, name.c_str(),
                  1e-6 * static_cast<double>(ours[name]->weight_bytes()), bandwidth[name]);
      report["read_gb_s"][model.name][name] = bandwidth[name];
    }
    std::printf("\n%-6s %5s  %-32s %9s %9s %8s %8s  %s\n", "model", "rows", "way", "min ms", "median", "GB/s", "x roof", "batch invariant");
    for (const std::size_t rows : rows_list) {
      std::vector<Way> ways;
      for (const auto& [format, linears] : ours) {
        OurLinears* const l = linears.get();
        const Way way{.name = format,
                      .bytes = l->weight_bytes(),
                      .peak = peaks.at(format).giga_operations,
                      .pass = [&pool, l, rows] { l->pass(pool, rows); },
                      .times = {}};
        if (format == "fp32") {
          ways.push_back(way);
          continue;
        }
        const auto number_format = format == "bf16" ? ops::WeightFormat::kBfloat16 : ops::WeightFormat::kInt8;
        for (const ops::TileKernel& kernel : ops::tile_kernels(number_format)) {
          if (!all_kernels && &kernel != &ops::tile_kernels(number_format).front()) continue;
          ways.push_back(way);
          ways.back().name += std::string(" ") + kernel.name;
          ways.back().pass = [&pool, l, rows, number_format, &kernel] {
            ops::choose_tile_kernel(number_format, kernel);
            l->pass(pool, rows);
          };
        }
      }
      std::vector<bench::TorchLinears> torch;
      if (with_torch) torch = bench::torch_linears(matrices(model), rows, static_cast<int>(threads));
      for (const bench::TorchLinears& way : torch) {
        ways.push_back({.name = way.name, .pass = way.pass, .batch_invariant = way.alone_equals_batch ? 1 : 0, .times = {}});
      }
      // In turns, so that a disturbance hits all alike.
      for (Way& way : ways) way.pass();
      double spent = 0.0;
      while (spent < seconds * 1e3 * static_cast<double>(ways.size()) || ways.front().times.size() < 5) {
        for (Way& way : ways) {
          way.pass();  // the caches are this way's own again
          way.times.push_back(time_of(way.pass));
          spent += 2 * way.times.back();
        }
      }
      for (const Way& way : ways) {
        const double best = *std::min_element(way.times.begin(), way.times.end());
        std::printf("%-6s %5zu  %-32s %9.3f %9.3f ", model.name, rows, way.name.c_str(), best, median(way.times));
        nlohmann::json line{{"model", model.name},
                            {"rows", rows},
                            {"way", way.name},
                            {"min_ms", best},
                            {"median_ms", median(way.times)},
                            {"batch_invariant", way.batch_invariant != 0}};
        if (way.bytes != 0) {
          const double read = 1e-6 * static_cast<double>(way.bytes) / bandwidth.at(way.name.substr(0, 4));
          const double compute = 2e-6 * weights * static_cast<double>(rows) / way.peak;
          std::printf("%8.1f %8.2f", 1e-6 * static_cast<double>(way.bytes) / best, best / std::max(read, compute));
          line["roof_ms"] = std::max(read, compute);
        } else {
          std::printf("%8s %8s", "", "");
        }
        std::printf("  %s\n", way.batch_invariant != 0 ? "yes" : "no");
        std::fflush(stdout);
        report["lines"].push_back(std::move(line));
      }
    }
    std::printf("\n");
  }
  if (!json_path.empty()) std::ofstream(json_path) << report.dump(2) << '\n';
  return 0;
}
