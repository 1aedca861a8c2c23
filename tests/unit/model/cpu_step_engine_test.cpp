#include "cpu_step_engine.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "precision.h"
#include "random_gpt.h"
#include "support/allocation_counter.h"
#include "support/golden_data.h"

namespace tts::model {
namespace {

using engine::SamplingParams;
using engine::SlotId;
using engine::StepOutcome;
using engine::StopReason;
using engine::UtterancePrompt;
using ::testing::HasSubstr;

constexpr CpuEngineOptions kOptions{.model = {},
                                    .precision = {},
                                    .sample_rate = 24000,
                                    .max_slots = 4,
                                    .max_context = 96,
                                    .max_prefill_rows = 24,
                                    .max_decode_steps = 8,
                                    .compute_threads = 2,
                                    .kv = ops::KvFormat::kFloat32,
                                    .prefix_cache_bytes = 0,
                                    .speaker_precision = engine::SpeakerPrecision::kFloat16};

// Random language model in front of the small sound model of the goldens; both are 64 wide.
engine::GptSizes sizes() {
  engine::GptSizes sizes = small_gpt_sizes(4, 2);
  sizes.num_audio_tokens = 626;  // codes the sound model knows
  return sizes;
}

std::unique_ptr<CpuStepEngine> make_engine(const std::function<void(GptWeights&)>& change = nullptr, CpuEngineOptions options = kOptions,
                                           const Formats& formats = {},
                                           const engine::Manifest& sound = testing::golden_manifest()) {
  GptWeights weights = RandomGpt(sizes()).weights(formats.weights);
  if (change) change(weights);
  options.kv = formats.kv;
  return std::make_unique<CpuStepEngine>(std::move(weights), load_sound_model(sound, false, formats.sound), options);
}

// What a server runs in; every other combination of weights, keys and values is tested with Gpt alone.
constexpr Formats kFormats[] = {{},
                                {ops::WeightFormat::kBfloat16, ops::KvFormat::kBfloat16, ops::WeightFormat::kBfloat16},
                                {ops::WeightFormat::kInt8, ops::KvFormat::kInt8, ops::WeightFormat::kBfloat16},
                                {ops::WeightFormat::kInt8, ops::KvFormat::kBfloat16, ops::WeightFormat::kFloat32}};

UtterancePrompt prompt_of(std::size_t length, std::int32_t first = 1) {
  UtterancePrompt prompt;
  for (std::size_t i = 0; i < length; ++i)
    prompt.tokens.push_back(static_cast<std::int32_t>((static_cast<std::size_t>(first) + i * 7) % 40));
  return prompt;
}

SamplingParams sampling_of(std::uint32_t max_steps, std::uint64_t seed = 1) {
  SamplingParams sampling;
  sampling.temperature = {1.0F, 1.0F, 1.0F, 1.0F};
  sampling.top_p = 0.95F;
  sampling.min_steps = max_steps;
  sampling.max_steps = max_steps;
  sampling.seed = seed;
  return sampling;
}

StepOutcome step_one(CpuStepEngine& engine, SlotId slot, std::uint32_t prefill = 0) {
  const engine::StepWork work{.slot = slot, .prefill_tokens = prefill};
  StepOutcome outcome;
  engine.step({&work, 1}, {&outcome, 1});
  return outcome;
}

std::vector<float> decode_one(CpuStepEngine& engine, SlotId slot, std::uint32_t steps, bool last) {
  std::vector<float> pcm(engine.max_decode_samples(steps, last));
  engine::DecodeWork work{.slot = slot, .steps = steps, .last = last, .pcm = pcm};
  engine.decode({&work, 1});
  pcm.resize(work.samples);
  return pcm;
}

TEST(CpuStepEngine, InfoNamesItsLimits) {
  CpuEngineOptions options = kOptions;
  options.model = "small";
  const auto engine = make_engine(nullptr, options);
  const engine::EngineInfo& info = engine->info();
  EXPECT_EQ(info.model, "small");
  EXPECT_EQ(info.device, "cpu");
  EXPECT_EQ(info.sample_rate, 24000U);
  EXPECT_EQ(info.samples_per_step, 512U);
  EXPECT_EQ(info.max_slots, 4U);
  EXPECT_EQ(info.max_context, 96U);
  EXPECT_EQ(info.max_rows_per_step, 28U);
  EXPECT_EQ(info.max_pending_steps, 8U);
  EXPECT_GT(info.lookahead_steps, 0U);
}

TEST(CpuStepEngine, AMissingDvaeFileFailsTheRequestsThatNeedIt) {
  engine::Manifest manifest = testing::golden_manifest();
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / ("engine_dvae_" + std::to_string(::getpid()) + ".safetensors");
  std::filesystem::copy_file(manifest.files.at("dvae").path, file, std::filesystem::copy_options::overwrite_existing);
  manifest.files.at("dvae").path = file;
  CpuEngineOptions options = kOptions;
  options.max_slots = 1;
  const auto engine = make_engine(nullptr, options, {}, manifest);
  std::filesystem::remove(file);
  UtterancePrompt prompt = prompt_of(3);
  prompt.mel_path = engine::MelPath::kCodes;
  EXPECT_EQ(engine->acquire(prompt, sampling_of(4)).error().code, ErrorCode::kEngineFailure);
  EXPECT_EQ(engine->encode_reference(std::vector<float>(4000)).error().code, ErrorCode::kEngineFailure);
  prompt.mel_path = engine::MelPath::kHidden;
  EXPECT_TRUE(engine->acquire(prompt, sampling_of(4)).ok());  // the only slot is still free
}

TEST(CpuStepEngine, LessLookaheadBringsSamplesSoonerAndNoFewer) {
  const auto engine = make_engine();
  const UtterancePrompt prompt = prompt_of(3);
  const SlotId slot = engine->acquire(prompt, sampling_of(12)).value();
  step_one(*engine, slot, 3);
  std::size_t written = 0;
  std::vector<float> pcm(engine->max_decode_samples(8, true));
  for (const bool last : {false, true}) {
    while (engine->pending_steps(slot) < (last ? 4U : 8U)) step_one(*engine, slot);
    engine::DecodeWork work{.slot = slot, .steps = engine->pending_steps(slot), .last = last, .lookahead = 3, .pcm = pcm};
    engine->decode({&work, 1});
    written += work.samples;
    EXPECT_EQ(written, last ? 23U * 256 : (8U - 3) * 512) << last;
  }
}

TEST(CpuStepEngine, AcquireRefusesWhatItCannotRun) {
  const auto engine = make_engine();
  struct Case {
    const char* param;
    ErrorCode code;
    std::function<void(UtterancePrompt&, SamplingParams&)> spoil;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Case> cases{
      {"tokens", ErrorCode::kInvalidArgument, [](auto& p, auto&) { p.tokens.clear(); }},
      {"tokens", ErrorCode::kInvalidArgument, [](auto& p, auto&) { p.tokens[1] = 40; }},
      {"shared_prefix", ErrorCode::kInvalidArgument, [](auto& p, auto&) { p.shared_prefix = 10; }},
      {"tokens", ErrorCode::kInvalidArgument, [](auto& p, auto&) { p.tokens[1] = -1; }},
      {"audio_prompt", ErrorCode::kInvalidArgument,
       [](auto& p, auto&) {
         p.audio_prompt = {{0, 1, 2, 625}};
       }},
      {"speaker", ErrorCode::kInvalidArgument, [](auto& p, auto&) { p.speaker = std::make_shared<std::vector<float>>(63, 1.0F); }},
      {"speaker", ErrorCode::kInvalidArgument, [&](auto& p, auto&) { p.speaker = std::make_shared<std::vector<float>>(64, nan); }},
      {"speaker", ErrorCode::kInvalidArgument, [](auto& p, auto&) { p.speaker = std::make_shared<std::vector<float>>(64, 1e9F); }},
      {"end_token", ErrorCode::kInvalidArgument, [](auto& p, auto&) { p.stage = engine::Stage::kText; }},
      {"temperature", ErrorCode::kInvalidArgument, [](auto&, auto& s) { s.temperature[2] = 0.0F; }},
      {"temperature", ErrorCode::kInvalidArgument, [&](auto&, auto& s) { s.temperature[0] = nan; }},
      {"temperature", ErrorCode::kInvalidArgument, [](auto&, auto& s) { s.temperature[0] = 2.1F; }},
      {"top_p", ErrorCode::kInvalidArgument, [](auto&, auto& s) { s.top_p = 1.01F; }},
      {"top_p", ErrorCode::kInvalidArgument, [](auto&, auto& s) { s.top_p = -0.1F; }},
      {"repetition_penalty", ErrorCode::kInvalidArgument, [](auto&, auto& s) { s.repetition_penalty = 0.0F; }},
      {"repetition_penalty", ErrorCode::kInvalidArgument, [](auto&, auto& s) { s.repetition_penalty = 1e6F; }},
      {"max_steps", ErrorCode::kInvalidArgument, [](auto&, auto& s) { s.max_steps = 0; }},
      {"max_steps", ErrorCode::kTooLarge, [](auto&, auto& s) { s.max_steps = 87; }},
      {"max_steps", ErrorCode::kTooLarge, [](auto&, auto& s) { s.max_steps = std::numeric_limits<std::uint32_t>::max(); }},
      {"max_steps", ErrorCode::kTooLarge,
       [](auto& p, auto& s) {
         p.audio_prompt = {{1, 2, 3, 4}}, s.max_steps = 86;
       }},
  };
  for (const Case& c : cases) {
    UtterancePrompt prompt = prompt_of(10);
    SamplingParams sampling = sampling_of(20);
    c.spoil(prompt, sampling);
    const auto result = engine->acquire(prompt, sampling);
    ASSERT_FALSE(result.ok()) << c.param;
    EXPECT_EQ(result.error().code, c.code);
    EXPECT_EQ(result.error().param, c.param);
  }
  EXPECT_TRUE(engine->acquire(prompt_of(10), sampling_of(86)).ok()) << "what just fits is taken";
}

TEST(CpuStepEngine, WithoutATextHeadRefiningIsUnsupported) {
  const auto engine = make_engine([](GptWeights& weights) { weights.text_head.reset(); });
  UtterancePrompt prompt = prompt_of(4);
  prompt.stage = engine::Stage::kText;
  prompt.end_token = 3;
  const auto result = engine->acquire(prompt, sampling_of(4));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
}

TEST(CpuStepEngine, SlotsRunOutComeBackAndNeverUnderTheSameId) {
  const auto engine = make_engine();
  std::vector<SlotId> slots;
  for (int i = 0; i < 4; ++i) slots.push_back(engine->acquire(prompt_of(3), sampling_of(4)).value());
  const auto full = engine->acquire(prompt_of(3), sampling_of(4));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kQueueFull);

  engine->release(slots[2]);
  EXPECT_EQ(engine->prefill_left(slots[2]), 0U);
  const SlotId next = engine->acquire(prompt_of(5), sampling_of(4)).value();
  EXPECT_EQ(next.index, slots[2].index);
  EXPECT_FALSE(next == slots[2]);
  EXPECT_EQ(engine->prefill_left(next), 5U);

  engine->release(slots[2]);  // dead
  engine->release({.index = 77, .generation = 1});
  engine->release({});
  EXPECT_EQ(engine->prefill_left(next), 5U);
  EXPECT_FALSE(engine->acquire(prompt_of(3), sampling_of(4)).ok());
}

TEST(CpuStepEngine, APromptIsConsumedInChunksAndTheLastOneSamples) {
  const auto engine = make_engine();
  const SlotId slot = engine->acquire(prompt_of(9), sampling_of(3)).value();
  EXPECT_FALSE(step_one(*engine, slot, 4).sampled);
  EXPECT_EQ(engine->prefill_left(slot), 5U);
  EXPECT_EQ(engine->pending_steps(slot), 0U);
  EXPECT_TRUE(step_one(*engine, slot, 5).sampled);
  EXPECT_EQ(engine->prefill_left(slot), 0U);
  EXPECT_EQ(engine->pending_steps(slot), 1U);
  EXPECT_EQ(step_one(*engine, slot).stop, StopReason::kNone);
  EXPECT_EQ(step_one(*engine, slot).stop, StopReason::kMaxSteps);
  EXPECT_EQ(engine->pending_steps(slot), 3U);
}

TEST(CpuStepEngine, TheEndCodeIsNotAudio) {
  // Head rows of the end code that no other code can beat, whatever the hidden state's sign.
  const auto engine = make_engine([](GptWeights& weights) {
    const std::size_t hidden = weights.sizes.hidden_size, codes = weights.sizes.num_audio_tokens;
    std::vector<float> head(engine::kCodebooks * codes * hidden, 0.0F);
    for (std::size_t d = 0; d < hidden; ++d) {
      for (const std::size_t code : {codes - 1, codes - 2}) head[(2 * codes + code) * hidden + d] = code == codes - 1 ? 100.0F : -100.0F;
    }
    weights.code_head = ops::make_linear(ops::WeightFormat::kFloat32, head.data(), engine::kCodebooks * codes, hidden);
  });
  SamplingParams sampling = sampling_of(50);
  sampling.min_steps = 2;
  const SlotId slot = engine->acquire(prompt_of(4), sampling).value();
  std::vector<StepOutcome> outcomes{step_one(*engine, slot, 4)};
  while (outcomes.back().stop == StopReason::kNone && outcomes.size() < 8) outcomes.push_back(step_one(*engine, slot));
  ASSERT_EQ(outcomes.back().stop, StopReason::kEndToken);
  EXPECT_EQ(outcomes.back().codes[2], 625);
  EXPECT_GE(outcomes.size(), 3U) << "min_steps forbids an earlier end";
  EXPECT_EQ(engine->pending_steps(slot), outcomes.size() - 1);
}

TEST(CpuStepEngine, DecodeTakesFromTheFrontAndKeepsTheRest) {
  const auto engine = make_engine();
  for (const auto path : {engine::MelPath::kHidden, engine::MelPath::kCodes}) {
    UtterancePrompt prompt = prompt_of(6);
    prompt.mel_path = path;
    std::vector<float> whole, parts;
    {
      const SlotId slot = engine->acquire(prompt, sampling_of(8)).value();
      step_one(*engine, slot, 6);
      for (int i = 0; i < 7; ++i) step_one(*engine, slot);
      whole = decode_one(*engine, slot, 8, true);
      EXPECT_EQ(engine->pending_steps(slot), 0U);
      engine->release(slot);
    }
    {
      const SlotId slot = engine->acquire(prompt, sampling_of(8)).value();
      step_one(*engine, slot, 6);
      for (int i = 0; i < 4; ++i) step_one(*engine, slot);
      parts = decode_one(*engine, slot, 3, false);
      EXPECT_EQ(engine->pending_steps(slot), 2U);
      for (int i = 0; i < 3; ++i) step_one(*engine, slot);
      for (const auto& [steps, last] : {std::pair{1U, false}, {4U, true}}) {
        const std::vector<float> part = decode_one(*engine, slot, steps, last);
        parts.insert(parts.end(), part.begin(), part.end());
      }
      engine->release(slot);
    }
    EXPECT_EQ(whole.size(), (2U * 8 - 1) * 256);
    EXPECT_EQ(parts, whole);
  }
}

// Everything one utterance produces, driven alone or next to others.
struct Production {
  std::vector<engine::CodeFrame> codes;
  std::vector<std::int32_t> tokens;
  std::vector<float> pcm;
  friend bool operator==(const Production&, const Production&) = default;
};

struct Utterance {
  UtterancePrompt prompt;
  SamplingParams sampling;
  std::uint32_t chunk;  // of the prompt
  std::uint32_t start;  // step at which it joins
};

std::vector<Production> produce(CpuStepEngine& engine, const std::vector<Utterance>& runs) {
  struct Active {
    std::size_t run;
    SlotId slot;
  };
  std::vector<Production> results(runs.size());
  std::vector<Active> active;
  std::size_t finished = 0;
  for (std::uint32_t now = 0; finished < runs.size(); ++now) {
    for (std::size_t r = 0; r < runs.size(); ++r) {
      if (runs[r].start == now) active.push_back({r, engine.acquire(runs[r].prompt, runs[r].sampling).value()});
    }
    std::vector<engine::StepWork> work;
    for (const Active& a : active)
      work.push_back({.slot = a.slot, .prefill_tokens = std::min(engine.prefill_left(a.slot), runs[a.run].chunk)});
    std::vector<StepOutcome> outcomes(work.size());
    engine.step(work, outcomes);
    for (std::size_t i = active.size(); i-- > 0;) {
      Production& result = results[active[i].run];
      if (!outcomes[i].sampled) continue;
      const bool text = runs[active[i].run].prompt.stage == engine::Stage::kText;
      const bool stopped = outcomes[i].stop != StopReason::kNone;
      if (text) result.tokens.push_back(outcomes[i].token);
      if (!text) {
        result.codes.push_back(outcomes[i].codes);
        if (const std::uint32_t pending = engine.pending_steps(active[i].slot); stopped || pending == engine.info().max_pending_steps) {
          const auto pcm = decode_one(engine, active[i].slot, pending, stopped);
          result.pcm.insert(result.pcm.end(), pcm.begin(), pcm.end());
        }
      }
      if (!stopped) continue;
      engine.release(active[i].slot);
      active.erase(active.begin() + static_cast<std::ptrdiff_t>(i));
      ++finished;
    }
  }
  return results;
}

TEST(CpuStepEngine, AnUtteranceIsBitEqualAloneAndAmongOthers) {
  std::vector<Utterance> runs;
  for (std::uint32_t r = 0; r < 4; ++r) {
    Utterance run{.prompt = prompt_of(7 + r * 3, static_cast<std::int32_t>(r)),
                  .sampling = sampling_of(10 + 5 * r, r),
                  .chunk = 1 + 2 * r,
                  .start = 3 * r};
    run.sampling.repetition_penalty = 1.0F + 0.1F * static_cast<float>(r);
    run.prompt.speaker = std::make_shared<std::vector<float>>(ops::random_floats(64, r));
    run.prompt.speaker_token = run.prompt.tokens[1];
    if (r == 1) run.prompt.mel_path = engine::MelPath::kCodes;
    if (r == 2) run.prompt.audio_prompt = {{1, 2, 3, 4}, {5, 6, 7, 8}, {624, 0, 624, 0}};
    if (r == 3) run.prompt.stage = engine::Stage::kText, run.prompt.end_token = 5;
    runs.push_back(std::move(run));
  }
  CpuEngineOptions one_thread = kOptions;
  one_thread.compute_threads = 1;
  for (const Formats& formats : kFormats) {
    SCOPED_TRACE(describe(formats));
    const auto together = produce(*make_engine(nullptr, kOptions, formats), runs);
    for (std::size_t r = 0; r < runs.size(); ++r) {
      Utterance alone = runs[r];
      alone.start = 0;
      alone.chunk = 24;
      EXPECT_EQ(produce(*make_engine(nullptr, one_thread, formats), {alone})[0], together[r]) << "utterance " << r;
    }
    EXPECT_EQ(together[0].codes.size(), 10U);
    EXPECT_EQ(together[3].tokens.size(), 25U);
    EXPECT_EQ(together[0].pcm.size(), (2U * 10 - 1) * 256);
  }
}

// Decoding and joining alike: what grows is there since construction.
TEST(CpuStepEngine, StepsAndDecodesAllocateNothing) {
  if (!testing::kCountsAllocations) GTEST_SKIP() << "a sanitizer's allocator is not counted";
  CpuEngineOptions options = kOptions;
  options.prefix_cache_bytes = 1 << 20;
  for (const Formats& formats : kFormats) {
    const auto engine = make_engine(nullptr, options, formats);
    UtterancePrompt prompt = prompt_of(20);
    prompt.shared_prefix = 5;
    SamplingParams sampling = sampling_of(40);
    sampling.repetition_penalty = 1.1F;
    const SlotId running = engine->acquire(prompt, sampling).value();
    step_one(*engine, running, 20);  // starts the workers too
    prompt.tokens[2] += 1;
    const SlotId joining = engine->acquire(prompt, sampling).value();
    std::vector<float> pcm(2 * engine->max_decode_samples(4, true));
    const auto half = static_cast<std::ptrdiff_t>(pcm.size() / 2);

    const std::uint64_t before = testing::allocation_count;
    for (const std::uint32_t chunk : {3U, 9U, 8U, 0U, 0U}) {
      const std::array<engine::StepWork, 2> work{{{.slot = running, .prefill_tokens = 0}, {.slot = joining, .prefill_tokens = chunk}}};
      std::array<StepOutcome, 2> outcomes;
      engine->step(work, outcomes);
    }
    std::array<engine::DecodeWork, 2> decode{{{.slot = running, .steps = 4, .last = false, .pcm = {pcm.begin(), pcm.begin() + half}},
                                              {.slot = joining, .steps = 3, .last = true, .pcm = {pcm.begin() + half, pcm.end()}}}};
    engine->decode(decode);
    EXPECT_EQ(testing::allocation_count, before) << describe(formats);
  }
}

// Utterances of two voices that share prefixes, each twice, with and without the cache.
TEST(CpuStepEngine, ASharedPrefixIsComputedOnceAndChangesNoBit) {
  for (const auto kv : {ops::KvFormat::kFloat32, ops::KvFormat::kBfloat16, ops::KvFormat::kInt8}) {
    std::vector<Utterance> runs;
    for (std::uint32_t r = 0; r < 4; ++r) {
      Utterance run{.prompt = prompt_of(8 + 3 * r), .sampling = sampling_of(9, r), .chunk = 3, .start = 14 * r};
      run.prompt.speaker = std::make_shared<std::vector<float>>(ops::random_floats(64, r / 2));
      run.prompt.speaker_token = run.prompt.tokens[1];
      run.prompt.shared_prefix = 5;
      runs.push_back(std::move(run));
    }
    CpuEngineOptions options = kOptions;
    const Formats formats{.kv = kv};
    const auto plain = make_engine(nullptr, options, formats);
    const auto expected = produce(*plain, runs);
    EXPECT_EQ(plain->stats().prefix_cache_misses, 0U) << "off";
    options.prefix_cache_bytes = 1 << 20;
    const auto caching = make_engine(nullptr, options, formats);
    EXPECT_EQ(produce(*caching, runs), expected);
    EXPECT_EQ(caching->stats().prefix_cache_hits, 2U);
    EXPECT_EQ(caching->stats().prefix_cache_misses, 2U);
    EXPECT_GT(caching->stats().prefix_cache_bytes, 0U);
    EXPECT_EQ(produce(*caching, runs), expected);
    EXPECT_EQ(caching->stats().prefix_cache_hits, 6U);

    const SlotId slot = caching->acquire(runs[0].prompt, runs[0].sampling).value();
    EXPECT_EQ(caching->prefill_left(slot), 3U) << "five of eight are there";
  }
}

TEST(CpuStepEngine, AnUtteranceReleasedBeforeItsPrefixLeavesNothingBehind) {
  CpuEngineOptions options = kOptions;
  options.prefix_cache_bytes = 1 << 20;
  const auto engine = make_engine(nullptr, options);
  UtterancePrompt prompt = prompt_of(10);
  prompt.shared_prefix = 6;
  const SlotId first = engine->acquire(prompt, sampling_of(4)).value();
  step_one(*engine, first, 5);
  engine->release(first);
  const SlotId second = engine->acquire(prompt, sampling_of(4)).value();
  EXPECT_EQ(engine->prefill_left(second), 10U);
  step_one(*engine, second, 6);
  EXPECT_EQ(engine->prefill_left(engine->acquire(prompt, sampling_of(4)).value()), 4U);
}

// What a scheduler does with one utterance; `between` is called after every call of the engine and may change the slot.
Production produce_with(CpuStepEngine& engine, const UtterancePrompt& prompt, const SamplingParams& sampling,
                        const std::function<void(SlotId& slot)>& between) {
  const bool text = prompt.stage == engine::Stage::kText;
  Production result;
  const auto decode = [&](SlotId slot, std::uint32_t steps, bool last) {
    std::vector<float> pcm(engine.max_decode_samples(steps, last));
    // Now and then sound that does not wait for all that follows it.
    const std::uint32_t lookahead = result.codes.size() % 3 == 0 ? 3 : engine::kExactLookahead;
    engine::DecodeWork work{.slot = slot, .steps = steps, .last = last, .lookahead = lookahead, .pcm = pcm};
    engine.decode({&work, 1});
    result.pcm.insert(result.pcm.end(), pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(work.samples));
  };
  SlotId slot = engine.acquire(prompt, sampling).value();
  between(slot);
  for (StopReason stop = StopReason::kNone; stop == StopReason::kNone;) {
    const StepOutcome outcome = step_one(engine, slot, std::min(engine.prefill_left(slot), 4U));
    stop = outcome.stop;
    if (outcome.sampled && text) result.tokens.push_back(outcome.token);
    if (outcome.sampled && !text) result.codes.push_back(outcome.codes);
    between(slot);
    if (stop != StopReason::kNone || engine.pending_steps(slot) < 6) continue;
    decode(slot, 4, false);
    between(slot);
  }
  if (!text) decode(slot, engine.pending_steps(slot), true);
  engine.release(slot);
  return result;
}

// Out of its slot, and into another when others have filled them all with what is theirs.
void park_and_come_back(CpuStepEngine& engine, SlotId& slot) {
  const SlotId before = slot;
  const std::uint32_t prefill_left = engine.prefill_left(slot), pending = engine.pending_steps(slot);
  const std::size_t bytes = engine.parking_bytes(slot);
  EXPECT_GT(bytes, 0U);
  auto parked = engine.park(slot).value();
  EXPECT_EQ(parked->bytes(), bytes);
  EXPECT_EQ(engine.prefill_left(before), 0U);
  EXPECT_EQ(engine.parking_bytes(before), 0U);
  std::vector<SlotId> others;
  for (std::uint32_t i = 0; i < engine.info().max_slots; ++i) {
    UtterancePrompt prompt = prompt_of(17 + i, static_cast<std::int32_t>(3 + i));
    if (i % 2 == 0) prompt.mel_path = engine::MelPath::kCodes;
    const SlotId other = engine.acquire(prompt, sampling_of(8, 90 + i)).value();
    step_one(engine, other, 17 + i);
    for (int s = 0; s < 4; ++s) step_one(engine, other);
    decode_one(engine, other, 3, false);
    others.push_back(other);
  }
  EXPECT_EQ(engine.unpark(parked).error().code, ErrorCode::kQueueFull);
  ASSERT_NE(parked, nullptr);
  const auto stays = std::find_if(others.begin(), others.end(), [&](SlotId other) { return other.index == before.index; });
  ASSERT_NE(stays, others.end());
  for (const SlotId& other : others) {
    if (other.index != before.index) engine.release(other);
  }
  slot = engine.unpark(parked).value();
  EXPECT_EQ(parked, nullptr);
  EXPECT_NE(slot.index, before.index);
  EXPECT_EQ(engine.prefill_left(slot), prefill_left);
  EXPECT_EQ(engine.pending_steps(slot), pending);
  engine.release(*stays);
}

std::vector<Utterance> one_of_each_kind() {
  std::vector<Utterance> runs;
  for (std::uint32_t r = 0; r < 4; ++r) {
    Utterance run{.prompt = prompt_of(9 + r, static_cast<std::int32_t>(r)), .sampling = sampling_of(25, r), .chunk = 24, .start = 0};
    run.sampling.repetition_penalty = 1.0F + 0.1F * static_cast<float>(r);
    run.prompt.speaker = std::make_shared<std::vector<float>>(ops::random_floats(64, r));
    run.prompt.speaker_token = run.prompt.tokens[1];
    if (r == 1) run.prompt.mel_path = engine::MelPath::kCodes;
    if (r == 2) run.prompt.audio_prompt = {{1, 2, 3, 4}, {5, 6, 7, 8}, {624, 0, 624, 0}};
    if (r == 3) run.prompt.stage = engine::Stage::kText, run.prompt.end_token = 5;
    run.prompt.shared_prefix = 6;
    runs.push_back(std::move(run));
  }
  return runs;
}

TEST(CpuStepEngine, AParkedUtteranceGoesOnBitForBitInAnotherSlot) {
  CpuEngineOptions options = kOptions;
  options.prefix_cache_bytes = 1 << 20;
  for (const Formats& formats : kFormats) {
    SCOPED_TRACE(describe(formats));
    const auto undisturbed = make_engine(nullptr, kOptions, formats), engine = make_engine(nullptr, options, formats);
    for (const Utterance& run : one_of_each_kind()) {
      SCOPED_TRACE(run.sampling.seed);
      const Production expected = produce_with(*undisturbed, run.prompt, run.sampling, [](SlotId&) {});
      EXPECT_EQ(expected.codes.size() + expected.tokens.size(), 25U);
      int moments = 0;
      const auto got = produce_with(*engine, run.prompt, run.sampling, [&](SlotId& slot) {
        ++moments;
        park_and_come_back(*engine, slot);
      });
      EXPECT_EQ(got, expected);
      EXPECT_GT(moments, 27);
    }
  }
}

TEST(CpuStepEngine, AParkedUtteranceTakesWhatItHoldsAndNoMore) {
  const auto engine = make_engine();
  const SlotId slot = engine->acquire(prompt_of(9), sampling_of(40)).value();
  const std::size_t empty = engine->parking_bytes(slot);
  EXPECT_LT(empty, 4096U) << "no position, no step, no sound";
  const std::size_t kv_width = 64 / sizes().num_attention_heads * sizes().num_key_value_heads;
  const std::size_t position = 2 * sizes().num_hidden_layers * kv_width * sizeof(float);
  step_one(*engine, slot, 9);
  const std::size_t joined = engine->parking_bytes(slot);
  EXPECT_GE(joined, empty + 9 * position + 64 * sizeof(float));
  EXPECT_LE(joined, empty + 16 * position + 64 * sizeof(float)) << "keys lie in groups of 16";
  decode_one(*engine, slot, 1, false);
  EXPECT_GT(engine->parking_bytes(slot), joined) << "the sound networks remember";
  EXPECT_EQ(engine->parking_bytes({.index = 3, .generation = 1}), 0U);
}

TEST(CpuStepEngine, OnlyWhatWasParkedHereComesBack) {
  const auto engine = make_engine(), other = make_engine();
  EXPECT_EQ(engine->park({.index = 1, .generation = 1}).error().code, ErrorCode::kNotFound);
  std::unique_ptr<engine::ParkedUtterance> parked;
  EXPECT_EQ(engine->unpark(parked).error().code, ErrorCode::kInvalidArgument);
  const SlotId slot = engine->acquire(prompt_of(3), sampling_of(4)).value();
  parked = engine->park(slot).value();
  EXPECT_EQ(engine->park(slot).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(other->unpark(parked).error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(parked, nullptr);
  parked.reset();  // given up; the slot has been free since it was parked
  for (std::uint32_t i = 0; i < kOptions.max_slots; ++i) EXPECT_TRUE(engine->acquire(prompt_of(3), sampling_of(4)).ok());
}

TEST(CpuStepEngine, AParkedUtteranceDoesNotKeepItsPrefixFromOthers) {
  CpuEngineOptions options = kOptions;
  options.prefix_cache_bytes = 1 << 20;
  const auto engine = make_engine(nullptr, options);
  UtterancePrompt prompt = prompt_of(10);
  prompt.shared_prefix = 6;
  const SlotId first = engine->acquire(prompt, sampling_of(4)).value();
  step_one(*engine, first, 5);
  const auto parked = engine->park(first).value();
  const SlotId second = engine->acquire(prompt, sampling_of(4)).value();
  EXPECT_EQ(engine->prefill_left(second), 10U);
  step_one(*engine, second, 6);
  EXPECT_EQ(engine->prefill_left(engine->acquire(prompt, sampling_of(4)).value()), 4U);
}

TEST(CpuStepEngine, WithoutMemoryForTheCopyAnUtteranceStaysInItsSlot) {
  if (!testing::kCountsAllocations) GTEST_SKIP() << "a sanitizer's allocator does not fail";
  const auto engine = make_engine();
  const Utterance run = one_of_each_kind().front();
  const Production expected = produce_with(*engine, run.prompt, run.sampling, [](SlotId&) {});
  int failures = 0;
  const auto got = produce_with(*engine, run.prompt, run.sampling, [&](SlotId& slot) {
    for (std::int64_t after = 0;; ++after) {
      std::unique_ptr<engine::ParkedUtterance> parked;
      testing::allocations_until_failure = after;
      try {
        parked = engine->park(slot).value();
      } catch (const std::bad_alloc&) {
        ++failures;
        continue;
      }
      testing::allocations_until_failure = -1;
      slot = engine->unpark(parked).value();
      return;
    }
  });
  EXPECT_EQ(got, expected);
  EXPECT_GT(failures, 60);
}

TEST(CpuStepEngine, TheSeedDecidesTheDraws) {
  const auto engine = make_engine();
  const auto with_seed = [&](std::uint64_t seed) {
    return produce(*engine, {Utterance{.prompt = prompt_of(6), .sampling = sampling_of(12, seed), .chunk = 24, .start = 0}})[0].codes;
  };
  EXPECT_EQ(with_seed(1), with_seed(1));
  EXPECT_NE(with_seed(1), with_seed(2));
}

TEST(CpuStepEngine, TheSpeakerVectorChangesOnlyItsPositions) {
  const auto engine = make_engine();
  UtterancePrompt plain = prompt_of(6), voiced = plain, elsewhere = plain;
  voiced.speaker = elsewhere.speaker = std::make_shared<std::vector<float>>(ops::random_floats(64, 1));
  voiced.speaker_token = plain.tokens[2];
  elsewhere.speaker_token = 39;
  ASSERT_EQ(std::count(plain.tokens.begin(), plain.tokens.end(), 39), 0);
  const auto codes = [&](const UtterancePrompt& prompt) {
    return produce(*engine, {Utterance{.prompt = prompt, .sampling = sampling_of(12), .chunk = 24, .start = 0}})[0].codes;
  };
  EXPECT_EQ(codes(plain), codes(elsewhere));
  EXPECT_NE(codes(plain), codes(voiced));
}

TEST(CpuStepEngine, ABrokenModelIsReportedAndTheSlotCanStillBeReleased) {
  for (const Formats& formats : kFormats) {
    const auto spoil = [](GptWeights& weights) { weights.final_norm[3] = std::numeric_limits<float>::infinity(); };
    const auto engine = make_engine(spoil, kOptions, formats);
    const SlotId slot = engine->acquire(prompt_of(4), sampling_of(4)).value();
    const StepOutcome outcome = step_one(*engine, slot, 4);
    EXPECT_EQ(outcome.stop, StopReason::kFailed);
    EXPECT_FALSE(outcome.sampled);
    engine->release(slot);
    EXPECT_TRUE(engine->acquire(prompt_of(4), sampling_of(4)).ok());
  }
}

TEST(CpuStepEngine, ValuesThatAreNotFiniteEndTheirSlotAlone) {
  constexpr std::int32_t kSpoilt = 39;
  for (const Formats& formats : kFormats) {
    const auto spoil = [&](GptWeights& weights) {
      std::vector<float> text = RandomGpt(sizes()).tensors.at("text");
      const std::size_t hidden = sizes().hidden_size;
      std::fill_n(text.begin() + kSpoilt * static_cast<std::ptrdiff_t>(hidden), hidden, std::numeric_limits<float>::infinity());
      weights.text_embedding = EmbeddingTable(std::move(text), hidden, formats.weights);
    };
    const auto engine = make_engine(spoil, kOptions, formats);
    const std::vector<Utterance> good = {{.prompt = prompt_of(4), .sampling = sampling_of(6), .chunk = 4, .start = 0}};
    const std::vector<Production> expected = produce(*engine, good);
    const SlotId broken = engine->acquire(prompt_of(4, kSpoilt), sampling_of(6)).value();
    const SlotId mate = engine->acquire(good[0].prompt, good[0].sampling).value();
    const std::array<engine::StepWork, 2> work{{{.slot = broken, .prefill_tokens = 4}, {.slot = mate, .prefill_tokens = 4}}};
    std::array<StepOutcome, 2> outcomes;
    engine->step(work, outcomes);
    EXPECT_EQ(outcomes[0].stop, StopReason::kFailed) << describe(formats);
    EXPECT_TRUE(outcomes[1].sampled);
    EXPECT_EQ(outcomes[1].codes, expected[0].codes[0]);
    engine->release(mate);
    engine->release(broken);
    EXPECT_EQ(produce(*engine, good), expected) << "in the slot that held them";

    const SlotId early = engine->acquire(prompt_of(4, kSpoilt), sampling_of(6)).value();
    EXPECT_EQ(step_one(*engine, early, 2).stop, StopReason::kFailed) << "before its prompt is consumed";
    engine->release(early);
  }
}

TEST(CpuStepEngine, EncodesReferenceRecordings) {
  const auto engine = make_engine();
  const auto codes = engine->encode_reference(ops::random_floats(24000, 1, 0.3F));
  ASSERT_TRUE(codes.ok());
  EXPECT_EQ(codes.value().size(), (1U + 24000 / 256) / 2);
  EXPECT_FALSE(engine->encode_reference({}).ok());
}

}  // namespace
}  // namespace tts::model
