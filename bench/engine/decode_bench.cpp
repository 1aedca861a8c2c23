// What decoding costs: steps of many streams through Decoder, Vocos and inverse STFT, by number of streams, chunk, number format and
// lookahead, and which part of it goes where. Hidden states are random; the cost does not depend on them.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tts/engine/manifest.h"

#include "conv_layers.h"
#include "inverse_stft.h"
#include "ops/compute_pool.h"
#include "ops/depthwise_norm.h"
#include "ops/linear.h"
#include "sound_model.h"
#include "stream_decoder.h"

namespace {

using namespace tts;
using namespace tts::model;
using Json = nlohmann::json;

struct Times {
  double best_ms = 0, median_ms = 0;
  double cpu_ms = 0;  // median of this thread's processor time: what the work costs where the machine does other things too
};

double thread_cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Repeats `fn` for about `seconds`, at least five times.
template <class Fn>
Times measure(double seconds, Fn&& fn) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times, cpu;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (times.size() < 5 || Clock::now() < end) {
    const auto begin = Clock::now();
    const double cpu_begin = thread_cpu_ms();
    fn();
    cpu.push_back(thread_cpu_ms() - cpu_begin);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  const double middle = median(times);
  return {times.front(), middle, median(cpu)};
}

std::vector<float> random_values(std::size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

struct Setting {
  std::uint32_t streams = 1, chunk = 8, lookahead = engine::kExactLookahead;
};

class Bench {
 public:
  Bench(const engine::Manifest& manifest, ops::WeightFormat format, std::uint32_t threads, double seconds)
      : manifest_(manifest), model_(load_sound_model(manifest, false, format)), pool_(threads), seconds_(seconds) {}

  // A push of `chunk` steps of every stream, in the middle of their utterances.
  Times push(const Setting& setting) {
    StreamDecoder decoder(model_, pool_, {.slots = setting.streams, .max_steps = setting.chunk});
    const std::vector<float> hidden = random_values(std::size_t{setting.chunk} * 2 * model_.decoder.inputs());
    std::vector<float> pcm(setting.streams * decoder.max_samples(setting.chunk));
    std::vector<DecodePush> work(setting.streams);
    for (std::uint32_t i = 0; i < setting.streams; ++i) {
      decoder.open(i, engine::MelPath::kHidden);
      const std::size_t room = decoder.max_samples(setting.chunk);
      work[i] = {.slot = i, .steps = setting.chunk, .lookahead = setting.lookahead, .hidden = hidden.data()};
      work[i].pcm = std::span(pcm).subspan(i * room, room);
    }
    for (std::uint32_t steps = 0; steps <= decoder.lookahead_steps() + setting.chunk; steps += setting.chunk) decoder.push(work);
    return measure(seconds_, [&] { decoder.push(work); });
  }

  // The parts of such a push, one after the other on as many rows, without what lies between them.
  Json parts(std::uint32_t rows) {
    const engine::Architecture& a = manifest_.architecture;
    return {{"rows", rows},
            {"block_linears_ms", linears(rows)},
            {"edge_linears_ms", edges(rows)},
            {"depthwise_and_norm_ms",
             depthwise(rows, a.decoder.hidden, a.decoder.n_layer, 2) + depthwise(rows, a.vocos.dim, a.vocos.num_layers, 1)},
            {"inverse_stft_ms", inverse_stft(rows)}};
  }

  const SoundModel& model() const { return model_; }

 private:
  struct Shape {
    std::size_t inputs, outputs, count, span;
    ops::Activation activation;
  };

  double products(std::uint32_t rows, ops::WeightFormat format, const std::vector<Shape>& shapes) {
    double ms = 0;
    for (const Shape& shape : shapes) {
      const std::vector<float> weight = random_values(shape.inputs * shape.outputs * shape.span);
      // As many copies as the network has layers, so that weights come from as far away as there.
      std::vector<std::unique_ptr<const ops::Linear>> layers;
      for (std::size_t i = 0; i < shape.count; ++i) {
        layers.push_back(ops::make_linear(format, weight.data(), shape.outputs, shape.inputs * shape.span));
      }
      ops::LinearInput x(format, rows + shape.span - 1, shape.inputs), y(format, rows, shape.outputs);
      const std::vector<float> values = random_values((rows + shape.span - 1) * shape.inputs);
      std::copy(values.begin(), values.end(), x.row(0));
      x.commit(pool_, rows + shape.span - 1);
      std::vector<float> sums(rows * shape.outputs);
      ms += measure(seconds_ / 4, [&] {
              for (const auto& layer : layers) {
                if (shape.activation == ops::Activation::kGelu) {
                  layer->forward(pool_, {x, rows}, y, shape.activation);
                } else {
                  layer->forward_add(pool_, {x, rows}, {sums.data(), shape.outputs});
                }
              }
            }).cpu_ms;
    }
    return ms;
  }

  double linears(std::uint32_t rows) {
    const engine::Architecture& a = manifest_.architecture;
    const std::size_t inner = std::size_t{4} * a.decoder.hidden;
    return products(rows, model_.format,
                    {{a.decoder.hidden, inner, a.decoder.n_layer, 1, ops::Activation::kGelu},
                     {inner, a.decoder.hidden, a.decoder.n_layer, 1, ops::Activation::kNone},
                     {a.vocos.dim, a.vocos.intermediate_dim, a.vocos.num_layers, 1, ops::Activation::kGelu},
                     {a.vocos.intermediate_dim, a.vocos.dim, a.vocos.num_layers, 1, ops::Activation::kNone}});
  }

  double edges(std::uint32_t rows) {
    const engine::Architecture& a = manifest_.architecture;
    const std::size_t terms = SoundLinear::max_terms(model_.format);
    return products(rows, model_.format,
                    {{terms * a.decoder.idim, a.decoder.bn_dim, 1, 3, ops::Activation::kNone},
                     {terms * a.decoder.bn_dim, a.decoder.hidden, 1, 3, ops::Activation::kNone},
                     {terms * a.decoder.hidden, a.n_mels, 1, 3, ops::Activation::kNone},
                     {terms * a.n_mels, a.vocos.dim, 1, 7, ops::Activation::kNone},
                     {terms * a.vocos.dim, std::size_t{a.n_fft} + 2, 1, 1, ops::Activation::kNone}});
  }

  double depthwise(std::uint32_t rows, std::size_t width, std::size_t layers, std::size_t dilation) {
    const std::vector<float> x = random_values((rows + 6 * dilation) * width), weight = random_values(7 * width), bias(width), scale(width, 1);
    std::vector<const float*> around;
    for (std::size_t r = 0; r < rows + 6 * dilation; ++r) around.push_back(x.data() + r * width);
    const ops::DepthwiseNorm layer{weight.data(), bias.data(), scale.data(), bias.data(), width, dilation, kLayerNormEps};
    ops::LinearInput y(model_.format, rows, width);
    constexpr std::uint32_t kTile = 8;
    return measure(seconds_ / 4, [&] {
             for (std::size_t i = 0; i < layers; ++i) {
               pool_.run((rows + kTile - 1) / kTile, [&](std::size_t tile, std::uint32_t) {
                 const std::size_t first = tile * kTile, count = std::min<std::size_t>(kTile, rows - first);
                 ops::depthwise_norm(layer, around.data() + first, count, y.row(first), width,
                                     model_.format == ops::WeightFormat::kBfloat16 ? y.bfloats(first) : nullptr);
               });
             }
           }).cpu_ms;
  }

  double inverse_stft(std::uint32_t rows) {
    const engine::Architecture& a = manifest_.architecture;
    InverseStft inverse(model_.vocos.window(), a.hop, pool_.workers());
    InverseStft::Tail tail = inverse.make_tail();
    const std::vector<float> head = random_values(std::size_t{rows} * (a.n_fft + 2));
    std::vector<float> pcm(std::size_t{rows} * a.hop);
    StreamRows matrix({.rows = rows, .width = std::size_t{a.n_fft} + 2, .inner = 0, .segments = 1});
    return measure(seconds_ / 4, [&] {
             matrix.clear(std::size_t{a.n_fft} + 2);
             std::copy(head.begin(), head.end(), matrix.append({.rows = {.rows = rows}}));
             inverse.to_time(pool_, matrix);
             inverse.overlap_add(matrix.row(0), rows, false, {}, tail, pcm.data());
           }).cpu_ms;
  }

  const engine::Manifest& manifest_;
  SoundModel model_;
  ops::ComputePool pool_;
  double seconds_;
};

std::string processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time of decoding: ms a step of a stream, by streams, chunk, number format and lookahead.");
  std::vector<std::string> models{TTS_SOURCE_DIR "/models/nano"}, formats{"float32", "bfloat16"};
  std::vector<std::uint32_t> streams{1, 4, 8, 16, 64, 100}, chunks{4, 8, 12, 24}, threads{1, 2}, lookaheads{4, 8, 12, 16};
  double seconds = 0.2;
  std::string output;
  app.add_option("--model", models, "model folders")->capture_default_str();
  app.add_option("--format", formats, "float32, bfloat16")->capture_default_str();
  app.add_option("--streams", streams, "streams in one push")->capture_default_str();
  app.add_option("--chunk", chunks, "steps of each stream in one push")->capture_default_str();
  app.add_option("--threads", threads, "compute threads")->capture_default_str();
  app.add_option("--lookahead", lookaheads, "steps of lookahead to measure beside exact decoding, at one and at the most streams")
      ->capture_default_str();
  app.add_option("--seconds", seconds, "time for each figure")->capture_default_str();
  app.add_option("--output", output, "JSON file for the results");
  CLI11_PARSE(app, argc, argv);

  Json results = {{"processor", processor()}, {"models", Json::array()}};
  for (const std::string& folder : models) {
    const engine::Manifest manifest = engine::read_manifest(folder);
    for (const std::string& format : formats) {
      for (const std::uint32_t workers : threads) {
        Bench bench(manifest, format == "float32" ? ops::WeightFormat::kFloat32 : ops::WeightFormat::kBfloat16, workers, seconds);
        Json run = {{"model", manifest.name}, {"format", format}, {"threads", workers}, {"pushes", Json::array()}, {"parts", Json::array()}};
        std::printf("%s, %s, %u threads\n", manifest.name.c_str(), format.c_str(), workers);
        const auto report = [&](const Setting& setting, const char* mode) {
          const Times times = bench.push(setting);
          const double steps = setting.streams * setting.chunk;
          Json row = {{"streams", setting.streams},
                      {"chunk", setting.chunk},
                      {"lookahead", setting.lookahead == engine::kExactLookahead ? Json("exact") : Json(setting.lookahead)},
                      {"push_ms", times.median_ms},
                      {"ms_per_step", times.median_ms / steps},
                      {"best_ms_per_step", times.best_ms / steps},
                      {"cpu_ms_per_step", times.cpu_ms / steps}};
          run["pushes"].push_back(row);
          std::printf("  %3u streams x %2u steps, %-12s %8.3f ms a push, %.4f ms a step (best %.4f, processor %.4f)\n", setting.streams,
                      setting.chunk, mode, times.median_ms, times.median_ms / steps, times.best_ms / steps, times.cpu_ms / steps);
          std::fflush(stdout);
        };
        for (const std::uint32_t count : streams) {
          for (const std::uint32_t chunk : chunks) report({.streams = count, .chunk = chunk}, "exact");
        }
        for (const std::uint32_t count : {streams.front(), streams.back()}) {
          for (const std::uint32_t chunk : {chunks.front(), chunks.back()}) {
            for (const std::uint32_t lookahead : lookaheads) {
              report({.streams = count, .chunk = chunk, .lookahead = lookahead}, ("lookahead " + std::to_string(lookahead)).c_str());
            }
          }
        }
        for (const std::uint32_t rows : {16U, 256U}) {
          const Json parts = bench.parts(rows);
          run["parts"].push_back(parts);
          std::printf("  parts of %u rows (%u steps), ms:", rows, rows / 2);
          for (const char* part : {"block_linears_ms", "edge_linears_ms", "depthwise_and_norm_ms", "inverse_stft_ms"}) {
            std::printf(" %s %.3f", part, parts.at(part).get<double>());
          }
          std::printf("\n");
        }
        results["models"].push_back(run);
      }
    }
  }
  if (!output.empty()) {
    std::ofstream file(output);
    file << results.dump(1) << '\n';
    if (!file) {
      std::fprintf(stderr, "cannot write %s\n", output.c_str());
      return 1;
    }
  }
  return 0;
}
