// One decode step of a whole batch on random weights of the nano and the official size: model, sampler, bookkeeping; no sound.
// Arguments: utterances, threads, positions already in each slot.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "best_time.h"
#include "gpt.h"
#include "random_gpt.h"
#include "sampler.h"

namespace {

using namespace tts;
using namespace tts::model;

engine::GptSizes nano_sizes() {
  return {.hidden_size = 256,
          .intermediate_size = 768,
          .num_hidden_layers = 8,
          .num_attention_heads = 4,
          .num_key_value_heads = 4,
          .max_position_embeddings = 2048,
          .num_text_tokens = 320,
          .num_audio_tokens = 626,
          .num_vq = 4};
}

engine::GptSizes official_sizes() {
  return {.hidden_size = 768,
          .intermediate_size = 3072,
          .num_hidden_layers = 20,
          .num_attention_heads = 12,
          .num_key_value_heads = 12,
          .max_position_embeddings = 4096,
          .num_text_tokens = 1000,
          .num_audio_tokens = 626,
          .num_vq = 4};
}

void decode_step(benchmark::State& state, engine::GptSizes (*sizes)()) {
  const auto batch = static_cast<std::uint32_t>(state.range(0)), threads = static_cast<std::uint32_t>(state.range(1)),
             context = static_cast<std::uint32_t>(state.range(2));
  const GptWeights weights = RandomGpt(sizes()).weights();
  ops::ComputePool pool(threads);
  Gpt gpt(weights, pool, {.slots = batch, .positions = context + 1, .rows = batch});
  std::vector<Sampler> samplers(threads, Sampler(weights.sizes.num_audio_tokens));
  const SeededNoise noise(1);
  std::vector<GptRow> rows(batch);
  const auto step = [&](std::uint32_t position, std::uint32_t draw) {
    for (std::uint32_t b = 0; b < batch; ++b) {
      gpt.embed_codes({static_cast<std::uint16_t>(draw % 600), 1, 2, 3}, gpt.input(b));
      rows[b] = {.slot = b, .position = position, .head = GptHead::kCode};
    }
    gpt.forward(rows);
    pool.run(std::size_t{batch} * engine::kCodebooks, [&](std::size_t block, std::uint32_t worker) {
      const auto q = static_cast<std::uint32_t>(block % engine::kCodebooks);
      const std::size_t vocabulary = weights.sizes.num_audio_tokens;
      benchmark::DoNotOptimize(
          samplers[worker].sample({.logits = gpt.logits(block / engine::kCodebooks).subspan(q * vocabulary, vocabulary),
                                   .temperature = 0.3F,
                                   .repetition_penalty = 1.05F,
                                   .top_p = 0.7F,
                                   .top_k = 20,
                                   .forbidden = {},
                                   .step = draw,
                                   .codebook = q,
                                   .recent = {}},
                                  noise));
    });
  };
  for (std::uint32_t position = 0; position < context; ++position) step(position, position);  // fills the caches
  std::uint32_t draw = 0;
  bench::BestTime best;
  for (auto _ : state) best.measure([&] { step(context, draw++); });
  best.report(state);
  state.counters["audio_x_real_time"] = batch * 512.0 / 24.0 / state.counters["best_ms"];
}

void sizes_of_batches(benchmark::internal::Benchmark* b) {
  for (const int threads : {1, 2}) {
    for (const int batch : {1, 4, 8, 16}) b->Args({batch, threads, 300});
  }
  b->ArgNames({"batch", "threads", "context"})->Unit(benchmark::kMillisecond)->UseRealTime();
}

BENCHMARK_CAPTURE(decode_step, nano, nano_sizes)->Apply(sizes_of_batches);
BENCHMARK_CAPTURE(decode_step, official, official_sizes)->Apply(sizes_of_batches);

void sampler_row(benchmark::State& state) {
  const auto vocabulary = static_cast<std::size_t>(state.range(0));
  std::vector<float> logits = ops::random_floats(vocabulary, 1, 3.0F);
  const std::vector<std::uint32_t> recent{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  Sampler sampler(vocabulary);
  const SeededNoise noise(1);
  std::uint32_t step = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(sampler.sample({.logits = logits,
                                             .temperature = 0.3F,
                                             .repetition_penalty = 1.05F,
                                             .top_p = 0.7F,
                                             .top_k = 20,
                                             .forbidden = 625,
                                             .step = step++,
                                             .recent = recent},
                                            noise));
  }
}
BENCHMARK(sampler_row)->Arg(626)->Arg(21178);

}  // namespace
