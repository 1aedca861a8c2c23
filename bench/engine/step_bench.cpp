// One decode step of a whole batch on random weights: language model, sampler and what lies between; no sound.
//
// Beside each figure stands the machine's floor for it from the same run: the bytes that the step must read, over the bandwidth at which
// as many threads read as many bytes.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "gpt.h"
#include "precision.h"
#include "random_gpt.h"
#include "roof.h"
#include "sampler.h"
#include "support/allocation_counter.h"

namespace {

using namespace tts;
using namespace tts::model;
using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> models{"nano", "full"}, weights{"float32", "bfloat16", "int8"}, kv{"same"};
  std::vector<std::uint32_t> batches{1, 4, 8, 16, 32, 64, 100};
  std::uint32_t context = 400, threads = 2, prompt_rows = 0;
  std::uint32_t part = 0, turn = 12;  // part = 0: all at once
  double seconds = 1.0;
  std::string output;
};

engine::GptSizes sizes_of(const std::string& model) {
  engine::GptSizes sizes;
  sizes.num_audio_tokens = 626;
  sizes.num_vq = 4;
  sizes.max_position_embeddings = 4096;
  if (model == "nano") {
    sizes.hidden_size = 256;
    sizes.intermediate_size = 768;
    sizes.num_hidden_layers = 8;
    sizes.num_attention_heads = sizes.num_key_value_heads = 4;
    sizes.num_text_tokens = 320;
  } else {
    sizes.hidden_size = 768;
    sizes.intermediate_size = 3072;
    sizes.num_hidden_layers = 20;
    sizes.num_attention_heads = sizes.num_key_value_heads = 12;
    sizes.num_text_tokens = 1000;  // the table is not read by a decode step
  }
  return sizes;
}

NumberFormat number_format(const std::string& name) {
  return name == "float32" ? NumberFormat::kFloat32 : name == "bfloat16" ? NumberFormat::kBfloat16 : NumberFormat::kInt8;
}

double weight_bytes(const GptWeights& weights) {
  std::size_t bytes = weights.code_head->weight_bytes();
  for (const GptLayerWeights& layer : weights.layers) {
    bytes += layer.qkv->weight_bytes() + layer.output->weight_bytes() + layer.gate_up->weight_bytes() + layer.down->weight_bytes();
  }
  return static_cast<double>(bytes);
}

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

struct Times {
  std::vector<double> step, sampler;  // ms
  std::uint64_t allocations = 0;
};

double at(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// Decode steps of `batch` slots with `context` positions behind them, and one more slot whose prompt rides along.
class StepBench {
 public:
  StepBench(const GptWeights& weights, ops::KvFormat kv, const Options& options, std::uint32_t batch)
      : weights_(weights),
        options_(options),
        batch_(batch),
        pool_(options.threads),
        gpt_(weights, pool_,
             {.slots = batch + 1, .positions = options.context + options.prompt_rows + 1, .rows = batch + options.prompt_rows, .kv = kv}),
        samplers_(options.threads, Sampler(weights.sizes.num_audio_tokens)),
        windows_(batch * engine::kCodebooks) {
    fill_cache();
    for (std::uint32_t b = 0; b < part(); ++b) rows_.push_back({.slot = b, .position = options.context, .head = GptHead::kCode});
    for (std::uint32_t p = 0; p < options.prompt_rows; ++p) rows_.push_back({.slot = batch, .position = p, .head = GptHead::kNone});
    codes_.resize(batch, {1, 2, 3, 4});
  }

  Times run(double seconds) {
    Times times;
    times.step.reserve(1 << 20);
    times.sampler.reserve(1 << 20);
    for (int i = 0; i < 3; ++i) step(times);
    times.step.clear();
    times.sampler.clear();
    const std::uint64_t before = testing::allocation_count.load();
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while ((Clock::now() < end || times.step.size() < 5) && times.step.size() < times.step.capacity()) step(times);
    times.allocations = (testing::allocation_count.load() - before);
    return times;
  }

  std::uint32_t part() const { return options_.part == 0 ? batch_ : std::min(options_.part, batch_); }
  double kv_bytes() { return static_cast<double>(part()) * options_.context * static_cast<double>(gpt_.cache().position_bytes()); }

 private:
  void fill_cache() {
    const std::size_t dim = weights_.head_dim();
    const std::vector<float> values = ops::random_floats(8192 + 2 * dim, 1);
    for (std::uint32_t b = 0; b < batch_; ++b) {
      for (std::uint32_t p = 0; p < options_.context; ++p) {
        for (std::size_t l = 0; l < weights_.layers.size(); ++l) {
          for (std::size_t h = 0; h < weights_.sizes.num_key_value_heads; ++h) {
            const float* const from = values.data() + (b * 31 + p * 7 + l * 13 + h * 3) % 8192;
            gpt_.cache().store(b, l, h, p, from, from + dim);
          }
        }
      }
    }
  }

  void step(Times& times) {
    const auto begin = Clock::now();
    for (std::uint32_t b = 0; b < part(); ++b) {
      if (draw_ % options_.turn == 0) rows_[b].slot = (rows_[b].slot + part()) % batch_;
      gpt_.embed_codes(codes_[b], gpt_.input(b));
    }
    for (std::uint32_t p = 0; p < options_.prompt_rows; ++p) gpt_.embed_text(static_cast<std::int32_t>(p % 300), gpt_.input(part() + p));
    gpt_.forward(rows_);
    const auto drawn = Clock::now();
    pool_.run(std::size_t{part()} * engine::kCodebooks, [&](std::size_t block, std::uint32_t worker) { draw(block, samplers_[worker]); });
    ++draw_;
    const auto end = Clock::now();
    times.step.push_back(milliseconds(end - begin));
    times.sampler.push_back(milliseconds(end - drawn));
  }

  void draw(std::size_t block, Sampler& sampler) {
    const std::size_t row = block / engine::kCodebooks, vocabulary = weights_.sizes.num_audio_tokens;
    const auto q = static_cast<std::uint32_t>(block % engine::kCodebooks);
    const auto token = sampler.sample({.logits = gpt_.logits(row).subspan(q * vocabulary, vocabulary),
                                       .temperature = 0.3F,
                                       .repetition_penalty = penalty_,
                                       .top_p = 0.7F,
                                       .top_k = 20,
                                       .forbidden = 625,
                                       .step = draw_,
                                       .codebook = q,
                                       .recent = windows_[block].tokens()},
                                      noise_);
    windows_[block].push(*token);
    codes_[row][q] = static_cast<std::uint16_t>(*token);
  }

  const GptWeights& weights_;
  const Options& options_;
  std::uint32_t batch_, draw_ = 0;
  ops::ComputePool pool_;
  Gpt gpt_;
  std::vector<Sampler> samplers_;
  std::vector<TokenWindow> windows_;
  std::vector<GptRow> rows_;
  std::vector<engine::CodeFrame> codes_;
  RepetitionPenalty penalty_{1.05F};
  SeededNoise noise_{1};
};

void parse(CLI::App& app, Options& options) {
  const auto formats = CLI::IsMember({"float32", "bfloat16", "int8"});
  app.add_option("--model", options.models, "nano, full")->delimiter(',')->check(CLI::IsMember({"nano", "full"}));
  app.add_option("--weights", options.weights, "float32, bfloat16, int8")->delimiter(',')->check(formats);
  app.add_option("--kv", options.kv, "the same, or 'same' as the weights")->delimiter(',');
  app.add_option("--batch", options.batches, "utterances at once")->delimiter(',');
  app.add_option("--context", options.context, "positions behind each");
  app.add_option("--prompt-rows", options.prompt_rows, "prompt positions of a joining utterance that ride on every step");
  app.add_option("--part", options.part, "utterances that one step serves, in turn; 0 = all");
  app.add_option("--turn", options.turn, "steps before the next part has its turn");
  app.add_option("--threads", options.threads, "workers, this thread included");
  app.add_option("--seconds", options.seconds, "measured for each line");
  app.add_option("--output", options.output, "JSON file to write");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("One decode step on random weights, by format and batch.");
  parse(app, options);
  CLI11_PARSE(app, argc, argv);

  nlohmann::json lines = nlohmann::json::array();
  std::printf("%s, %u threads, context %u, %u prompt rows\n", instruction_set().c_str(), options.threads, options.context,
              options.prompt_rows);
  std::printf("%-5s %-8s %-8s %5s %9s %9s %8s %9s %6s %8s %9s %6s\n", "model", "weights", "kv", "batch", "step ms", "p95", "MB", "floor ms",
              "ratio", "sampler", "x real", "alloc");
  for (const std::string& model : options.models) {
    const RandomGpt random(sizes_of(model));
    for (const std::string& weight_format : options.weights) {
      const Formats formats = choose_formats({.weights = number_format(weight_format)});
      const GptWeights weights = random.weights(formats.weights);
      for (const std::string& kv : options.kv) {
        const std::string kv_format = kv == "same" ? weight_format : kv;
        for (const std::uint32_t batch : options.batches) {
          StepBench step_bench(weights, choose_formats({.kv = number_format(kv_format)}).kv, options, batch);
          const double bytes = weight_bytes(weights) + step_bench.kv_bytes();
          const double bandwidth = 1e9 * bench::read_bandwidth(options.threads, static_cast<std::size_t>(bytes));
          const Times times = step_bench.run(options.seconds);
          const double step = at(times.step, 0.5), floor = bytes / bandwidth * 1e3;
          const double sampler = at(times.sampler, 0.5) / step, realtime = step_bench.part() * 512.0 / 24.0 / step;
          std::printf("%-5s %-8s %-8s %5u %9.3f %9.3f %8.1f %9.3f %6.2f %7.2f%% %9.1f %6.1f\n", model.c_str(), weight_format.c_str(),
                      kv_format.c_str(), batch, step, at(times.step, 0.95), bytes * 1e-6, floor, step / floor, 100 * sampler, realtime,
                      static_cast<double>(times.allocations) / static_cast<double>(times.step.size()));
          std::fflush(stdout);
          lines.push_back({{"model", model},
                           {"weights", weight_format},
                           {"kv", kv_format},
                           {"batch", batch},
                           {"context", options.context},
                           {"prompt_rows", options.prompt_rows},
                           {"threads", options.threads},
                           {"step_ms", {{"p50", step}, {"p95", at(times.step, 0.95)}, {"least", at(times.step, 0)}}},
                           {"steps_measured", times.step.size()},
                           {"bytes", bytes},
                           {"bandwidth_bytes_per_s", bandwidth},
                           {"floor_ms", floor},
                           {"step_over_floor", step / floor},
                           {"sampler_share", sampler},
                           {"audio_x_real_time", realtime},
                           {"allocations", times.allocations}});
        }
      }
    }
  }
  if (!options.output.empty()) {
    std::ofstream file(options.output);
    file << nlohmann::json({{"instructions", instruction_set()}, {"lines", lines}}).dump(2) << '\n';
    if (!file) return std::cerr << "cannot write " << options.output << '\n', 1;
  }
  return 0;
}
