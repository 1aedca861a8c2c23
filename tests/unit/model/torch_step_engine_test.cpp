// The tensor engine on CPU tensors against the CPU engine: the same tokens, the same samples up to rounding (1e-4), whatever shares
// the batch, with and without running ahead, with layers in one piece or two.

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>

#include "cpu_step_engine.h"
#include "random_gpt_files.h"
#include "support/golden_data.h"
#include "torch/tensor_step_engine.h"

namespace tts::model {
namespace {

using engine::SamplingParams;
using engine::SlotId;
using engine::StepOutcome;
using engine::StepWork;
using engine::StopReason;
using engine::UtterancePrompt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kTolerance = 1e-4F;

constexpr std::uint32_t kSlots = 5, kContext = 160;
const TensorEngineOptions kOptions{.max_slots = kSlots,
                                   .max_context = kContext,
                                   .max_prefill_rows = 24,
                                   .max_decode_steps = 8,
                                   .preferred_batch_sizes = {},
                                   .run_ahead = {}};

// Random language model in front of the small sound model of the goldens; both are 64 wide. Two query heads share a key head.
const RandomGpt& random_gpt() {
  static const RandomGpt gpt = [] {
    engine::GptSizes sizes = small_gpt_sizes(4, 2, 3);
    sizes.num_audio_tokens = 626;  // codes the sound model knows
    return RandomGpt(sizes);
  }();
  return gpt;
}

std::shared_ptr<TensorModel> load_model_tensors(const TensorFormats& formats = {}, std::vector<LayerRange> placement = {{0, 3, kHost}}) {
  const c10::InferenceMode inference;
  at::set_num_threads(1);
  const RandomGptFiles files(random_gpt());
  return std::make_shared<TensorModel>(
      TensorModel{.name = "small",
                  .sample_rate = 24000,
                  .speaker_precision = engine::SpeakerPrecision::kFloat16,
                  .gpt = load_gpt_tensors(random_gpt().sizes, files.gpt(), files.embed(), formats, std::move(placement), c10::kCPU),
                  .sound = load_sound_tensors(testing::golden_manifest(), formats.sound, c10::kCPU, false)});
}

const std::shared_ptr<TensorModel>& shared_model() {
  static const auto model = load_model_tensors();
  return model;
}

std::unique_ptr<TensorStepEngine> make_engine(const TensorEngineOptions& options = kOptions,
                                              const std::shared_ptr<const TensorModel>& model = shared_model()) {
  return std::make_unique<TensorStepEngine>(model, make_cpu_runtime(), options);
}

std::unique_ptr<CpuStepEngine> make_cpu_engine() {
  return std::make_unique<CpuStepEngine>(random_gpt().weights(),
                                         load_sound_model(testing::golden_manifest(), false, ops::WeightFormat::kFloat32),
                                         CpuEngineOptions{.model = "small",
                                                          .sample_rate = 24000,
                                                          .max_slots = kSlots,
                                                          .max_context = kContext,
                                                          .max_prefill_rows = 24,
                                                          .max_decode_steps = 8,
                                                          .compute_threads = 1,
                                                          .speaker_precision = engine::SpeakerPrecision::kFloat16});
}

UtterancePrompt prompt_of(std::size_t length, std::int32_t first = 1) {
  UtterancePrompt prompt;
  for (std::size_t i = 0; i < length; ++i)
    prompt.tokens.push_back(static_cast<std::int32_t>((static_cast<std::size_t>(first) + i * 7) % 40));
  return prompt;
}

SamplingParams sampling_of(std::uint32_t max_steps, std::uint64_t seed = 1) {
  SamplingParams sampling;
  sampling.temperature = {1.0F, 0.8F, 1.2F, 1.0F};
  sampling.top_p = 0.95F;
  sampling.min_steps = max_steps;
  sampling.max_steps = max_steps;
  sampling.seed = seed;
  return sampling;
}

StepOutcome step_one(engine::StepEngine& engine, SlotId slot, std::uint32_t prefill = 0) {
  const engine::StepWork work{.slot = slot, .prefill_tokens = prefill};
  StepOutcome outcome;
  engine.step({&work, 1}, {&outcome, 1});
  return outcome;
}

std::vector<float> decode_one(engine::StepEngine& engine, SlotId slot, std::uint32_t steps, bool last) {
  std::vector<float> pcm(engine.max_decode_samples(steps, last));
  engine::DecodeWork work{.slot = slot, .steps = steps, .last = last, .pcm = pcm};
  engine.decode({&work, 1});
  pcm.resize(work.samples);
  return pcm;
}

// Everything one utterance produces, driven alone or next to others.
struct Production {
  std::vector<engine::CodeFrame> codes;
  std::vector<std::int32_t> tokens;
  std::vector<float> pcm;
  StopReason stop = StopReason::kNone;
};

struct Utterance {
  UtterancePrompt prompt;
  SamplingParams sampling;
  std::uint32_t chunk = 24;       // of the prompt
  std::uint32_t start = 0;        // step at which it joins
  std::uint32_t pause_every = 0;  // it sits out every n-th step; 0 = none
  std::uint32_t cancel_at = ~0U;  // step at which it is released unfinished
  std::uint32_t park_at = ~0U;    // step at which it is parked
  std::uint32_t back_at = ~0U;    // and has a slot again, when one is free
};

std::vector<Production> produce(engine::StepEngine& engine, const std::vector<Utterance>& runs) {
  struct Active {
    std::size_t run;
    SlotId slot;
  };
  std::vector<Production> results(runs.size());
  std::vector<Active> active;
  std::vector<std::unique_ptr<engine::ParkedUtterance>> parked(runs.size());
  std::size_t finished = 0;
  for (std::uint32_t now = 0; finished < runs.size(); ++now) {
    for (std::size_t r = 0; r < runs.size(); ++r) {
      if (runs[r].start == now) active.push_back({r, engine.acquire(runs[r].prompt, runs[r].sampling).value()});
      if (parked[r] == nullptr || runs[r].back_at > now) continue;
      if (const auto slot = engine.unpark(parked[r]); slot.ok()) active.push_back({r, *slot});
    }
    for (std::size_t i = active.size(); i-- > 0;) {
      const std::size_t run = active[i].run;
      if (runs[run].cancel_at != now && runs[run].park_at != now) continue;
      if (runs[run].park_at == now) {
        const std::size_t bytes = engine.parking_bytes(active[i].slot);
        parked[run] = engine.park(active[i].slot).value();
        EXPECT_EQ(parked[run]->bytes(), bytes);
      } else {
        engine.release(active[i].slot);
        ++finished;
      }
      active.erase(active.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::vector<engine::StepWork> work;
    std::vector<std::size_t> taking;
    std::uint32_t spare_rows = engine.info().max_rows_per_step - static_cast<std::uint32_t>(active.size());
    for (std::size_t i = 0; i < active.size(); ++i) {
      const Utterance& run = runs[active[i].run];
      if (run.pause_every != 0 && now % run.pause_every == 0) continue;
      const std::uint32_t tokens = std::min({engine.prefill_left(active[i].slot), run.chunk, 1 + spare_rows});
      spare_rows -= std::max(tokens, 1U) - 1;
      work.push_back({.slot = active[i].slot, .prefill_tokens = tokens});
      taking.push_back(i);
    }
    std::vector<StepOutcome> outcomes(work.size());
    if (!work.empty()) engine.step(work, outcomes);
    for (std::size_t w = work.size(); w-- > 0;) {
      const Active& row = active[taking[w]];
      Production& result = results[row.run];
      if (!outcomes[w].sampled) continue;
      result.stop = outcomes[w].stop;
      const bool stopped = result.stop != StopReason::kNone;
      if (runs[row.run].prompt.stage == engine::Stage::kText) {
        result.tokens.push_back(outcomes[w].token);
      } else {
        result.codes.push_back(outcomes[w].codes);
        if (const std::uint32_t pending = engine.pending_steps(row.slot); stopped || pending == engine.info().max_pending_steps) {
          const auto pcm = decode_one(engine, row.slot, pending, stopped);
          result.pcm.insert(result.pcm.end(), pcm.begin(), pcm.end());
        }
      }
      if (!stopped) continue;
      engine.release(row.slot);
      active.erase(active.begin() + static_cast<std::ptrdiff_t>(taking[w]));
      ++finished;
    }
  }
  return results;
}

void expect_equal(const std::vector<Production>& got, const std::vector<Production>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].codes, expected[i].codes) << "utterance " << i;
    EXPECT_EQ(got[i].tokens, expected[i].tokens) << "utterance " << i;
    EXPECT_EQ(got[i].stop, expected[i].stop) << "utterance " << i;
    ASSERT_EQ(got[i].pcm.size(), expected[i].pcm.size()) << "utterance " << i;
    EXPECT_LE(testing::max_difference(got[i].pcm, expected[i].pcm), kTolerance) << "utterance " << i;
  }
}

// Of all kinds, more than there are slots at once.
std::vector<Utterance> mixed_utterances() {
  std::vector<Utterance> runs;
  for (std::uint32_t r = 0; r < 8; ++r) {
    Utterance run{.prompt = prompt_of(1 + r * 4, static_cast<std::int32_t>(r)),
                  .sampling = sampling_of(12 + 5 * (r % 4), r),
                  .chunk = 1 + 3 * r,
                  .start = r < 5 ? 3 * r : 40 + 2 * r};
    run.sampling.repetition_penalty = 1.0F + 0.1F * static_cast<float>(r % 4);
    run.sampling.top_k = r % 3 == 0 ? 0 : 20;
    run.sampling.greedy = r == 6;
    run.prompt.speaker = std::make_shared<std::vector<float>>(ops::random_floats(64, r));
    run.prompt.speaker_token = run.prompt.tokens[r % run.prompt.tokens.size()];
    if (r % 4 == 1) run.prompt.mel_path = engine::MelPath::kCodes;
    if (r % 4 == 2) run.prompt.audio_prompt = {{1, 2, 3, 4}, {5, 6, 7, 8}, {624, 0, 624, 0}};
    if (r == 3) run.prompt.stage = engine::Stage::kText, run.prompt.end_token = 5, run.sampling.min_steps = 3;
    if (r == 4) run.pause_every = 3;
    runs.push_back(std::move(run));
  }
  return runs;
}

const std::vector<Production>& expected_mixed() {
  static const std::vector<Production> expected = produce(*make_cpu_engine(), mixed_utterances());
  return expected;
}

TEST(TensorStepEngine, InfoNamesItsLimits) {
  const auto engine = make_engine();
  const engine::EngineInfo& info = engine->info();
  const auto cpu = make_cpu_engine();
  EXPECT_EQ(info.model, "small");
  EXPECT_EQ(info.device, "cpu-tensors");
  EXPECT_EQ(info.precision, "float32 weights, float32 keys and values, float32 sound");
  EXPECT_EQ(info.sample_rate, 24000U);
  EXPECT_EQ(info.samples_per_step, 512U);
  EXPECT_EQ(info.max_slots, kSlots);
  EXPECT_EQ(info.max_context, kContext);
  EXPECT_EQ(info.max_rows_per_step, kSlots + 24);
  EXPECT_EQ(info.max_pending_steps, 8U);
  EXPECT_EQ(info.lookahead_steps, cpu->info().lookahead_steps);
}

TEST(TensorStepEngine, ProducesWhatTheCpuEngineDoes) {
  ASSERT_EQ(expected_mixed()[0].codes.size(), 12U);
  ASSERT_FALSE(expected_mixed()[3].tokens.empty());
  expect_equal(produce(*make_engine(), mixed_utterances()), expected_mixed());
}

TEST(TensorStepEngine, RunningAheadChangesNothing) {
  TensorEngineOptions options = kOptions;
  options.run_ahead = true;
  expect_equal(produce(*make_engine(options), mixed_utterances()), expected_mixed());
}

TEST(TensorStepEngine, OneBatchSizeForAllIsAsGood) {
  TensorEngineOptions options = kOptions;
  options.preferred_batch_sizes = {kSlots};
  expect_equal(produce(*make_engine(options), mixed_utterances()), expected_mixed());
}

TEST(TensorStepEngine, LayersInSeveralPieces) {
  for (const std::vector<LayerRange>& placement :
       {std::vector<LayerRange>{{0, 2, kHost}, {2, 1, kHost}}, {{0, 1, kHost}, {1, 1, kHost}, {2, 1, kHost}}}) {
    TensorEngineOptions options = kOptions;
    options.run_ahead = true;
    expect_equal(produce(*make_engine(options, load_model_tensors({}, placement)), mixed_utterances()), expected_mixed());
  }
}

TEST(TensorStepEngine, EnginesShareAModel) {
  const auto first = make_engine(), second = make_engine();
  const auto runs = mixed_utterances();
  EXPECT_EQ(produce(*first, {runs[0]})[0].codes, produce(*second, {runs[0]})[0].codes);
  EXPECT_GE(shared_model().use_count(), 3);
}

// Utterances leave from the low lanes first, so that those left have to move down; some are released in the middle of a step that is
// already on its way, and their slots taken again at once.
TEST(TensorStepEngine, ComingAndGoingDisturbsNobody) {
  std::vector<Utterance> runs;
  for (std::uint32_t r = 0; r < 5; ++r)
    runs.push_back({.prompt = prompt_of(5 + r), .sampling = sampling_of(r < 2 ? 6 : 60, r), .start = r});
  for (std::uint32_t r = 0; r < 4; ++r)
    runs.push_back({.prompt = prompt_of(9, 3), .sampling = sampling_of(40, 50 + r), .start = 13 + 7 * r, .cancel_at = 16 + 7 * r});
  runs.push_back({.prompt = prompt_of(20, 2), .sampling = sampling_of(30, 77), .chunk = 5, .start = 45});
  const auto expected = produce(*make_cpu_engine(), runs);
  for (const bool run_ahead : {false, true}) {
    TensorEngineOptions options = kOptions;
    options.run_ahead = run_ahead;
    expect_equal(produce(*make_engine(options), runs), expected);
  }
}

// Each leaves its slot once and comes back some steps later, when others have been in its slot and its lane, all at different moments:
// in the middle of the prompt, with steps pending, with a step on the way.
TEST(TensorStepEngine, ParkedUtterancesGoOnAsIfTheyHadStayed) {
  for (const bool run_ahead : {false, true}) {
    for (std::uint32_t moment = 0; moment < 20; moment += run_ahead ? 3 : 7) {
      SCOPED_TRACE(moment);
      std::vector<Utterance> runs = mixed_utterances();
      for (std::uint32_t r = 0; r < runs.size(); ++r) {
        runs[r].park_at = runs[r].start + (moment + 3 * r) % 20;
        runs[r].back_at = runs[r].park_at + 1 + r % 4 * 3;
      }
      TensorEngineOptions options = kOptions;
      options.run_ahead = run_ahead;
      expect_equal(produce(*make_engine(options), runs), expected_mixed());
    }
  }
}

TEST(TensorStepEngine, ParkedUtterancesOfSeveralPieces) {
  std::vector<Utterance> runs = mixed_utterances();
  for (std::uint32_t r = 0; r < runs.size(); ++r) {
    runs[r].park_at = runs[r].start + 4 + r;
    runs[r].back_at = runs[r].park_at + 3;
  }
  TensorEngineOptions options = kOptions;
  options.run_ahead = true;
  expect_equal(produce(*make_engine(options, load_model_tensors({}, {{0, 2, kHost}, {2, 1, kHost}})), runs), expected_mixed());
}

TEST(TensorStepEngine, OnlyWhatWasParkedHereComesBackWhenASlotIsFree) {
  const auto engine = make_engine(), other = make_engine();
  EXPECT_EQ(engine->park({.index = 1, .generation = 1}).error().code, ErrorCode::kNotFound);
  std::unique_ptr<engine::ParkedUtterance> parked;
  EXPECT_EQ(engine->unpark(parked).error().code, ErrorCode::kInvalidArgument);
  const SlotId slot = engine->acquire(prompt_of(3), sampling_of(4)).value();
  EXPECT_GT(engine->parking_bytes(slot), 0U);
  parked = engine->park(slot).value();
  EXPECT_EQ(engine->parking_bytes(slot), 0U);
  EXPECT_EQ(engine->park(slot).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(other->unpark(parked).error().code, ErrorCode::kInvalidArgument);
  std::vector<SlotId> slots;
  for (std::uint32_t i = 0; i < kSlots; ++i) slots.push_back(engine->acquire(prompt_of(3), sampling_of(4)).value());
  EXPECT_EQ(engine->unpark(parked).error().code, ErrorCode::kQueueFull);
  EXPECT_NE(parked, nullptr);
  engine->release(slots[3]);
  EXPECT_EQ(engine->unpark(parked).value().index, slots[3].index);
  EXPECT_EQ(parked, nullptr);
}

TEST(TensorStepEngine, SlotsRunOutComeBackAndNeverUnderTheSameId) {
  const auto engine = make_engine();
  std::vector<SlotId> slots;
  for (std::uint32_t i = 0; i < kSlots; ++i) slots.push_back(engine->acquire(prompt_of(3), sampling_of(4)).value());
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
  EXPECT_EQ(engine->prefill_left(next), 5U);
  EXPECT_FALSE(engine->acquire(prompt_of(3), sampling_of(4)).ok());
}

TEST(TensorStepEngine, AcquireRefusesWhatItCannotRun) {
  const auto engine = make_engine();
  EXPECT_EQ(engine->acquire({}, sampling_of(4)).error().param, "tokens");
  EXPECT_EQ(engine->acquire(prompt_of(10), sampling_of(kContext - 9)).error().code, ErrorCode::kTooLarge);
  EXPECT_TRUE(engine->acquire(prompt_of(10), sampling_of(kContext - 10)).ok()) << "what just fits is taken";
}

TEST(TensorStepEngine, TheWholeContextCanBeUsed) {
  TensorEngineOptions options = kOptions;
  options.max_context = 64;  // a whole number of attention's units: the last position is the last of the cache
  options.run_ahead = true;
  const auto engine = make_engine(options);
  const std::vector<Utterance> runs{{.prompt = prompt_of(14), .sampling = sampling_of(50)}};
  expect_equal(produce(*engine, runs), produce(*make_cpu_engine(), runs));
}

TEST(TensorStepEngine, PendingStepsWaitForTheDecoder) {
  for (const bool run_ahead : {false, true}) {
    TensorEngineOptions options = kOptions;
    options.run_ahead = run_ahead;
    const auto engine = make_engine(options);
    const auto cpu = make_cpu_engine();
    std::vector<float> pcm, expected;
    for (engine::StepEngine* const each : {static_cast<engine::StepEngine*>(engine.get()), static_cast<engine::StepEngine*>(cpu.get())}) {
      std::vector<float>& out = each == cpu.get() ? expected : pcm;
      const SlotId slot = each->acquire(prompt_of(6), sampling_of(40)).value();
      EXPECT_FALSE(step_one(*each, slot, 4).sampled);
      EXPECT_EQ(each->prefill_left(slot), 2U);
      EXPECT_TRUE(step_one(*each, slot, 2).sampled);
      for (int i = 0; i < 7; ++i) step_one(*each, slot);
      EXPECT_EQ(each->pending_steps(slot), 8U) << "as many as it may hold";
      for (const std::uint32_t steps : {5U, 2U, 1U}) {
        const auto part = decode_one(*each, slot, steps, false);
        out.insert(out.end(), part.begin(), part.end());
        step_one(*each, slot);
      }
      EXPECT_EQ(each->pending_steps(slot), 3U);
      const auto part = decode_one(*each, slot, 3, true);
      out.insert(out.end(), part.begin(), part.end());
    }
    EXPECT_LE(testing::max_difference(pcm, expected), kTolerance);
  }
}

TEST(TensorStepEngine, EncodesReferenceRecordings) {
  const auto pcm = ops::random_floats(24000, 1, 0.3F);
  const auto codes = make_engine()->encode_reference(pcm);
  ASSERT_TRUE(codes.ok());
  EXPECT_EQ(codes.value(), make_cpu_engine()->encode_reference(pcm).value());
}

SamplingParams greedy_sampling(std::uint32_t max_steps) {
  SamplingParams sampling = sampling_of(max_steps);
  sampling.greedy = true;
  return sampling;
}

// An utterance whose first step draws a code after which nothing is finite, and some that never draw it: of three positions and four steps,
// which end before the position that is spoilt, and a longer one.
struct SpoiltModel {
  std::shared_ptr<TensorModel> model = load_model_tensors();
  UtterancePrompt bad = prompt_of(8);
  std::vector<Utterance> good;
  std::vector<Production> expected;

  SpoiltModel() {
    for (std::uint32_t i = 0; i + 1 < kSlots; ++i)
      good.push_back({.prompt = prompt_of(3, static_cast<std::int32_t>(2 + i)), .sampling = sampling_of(4, i)});
    good.push_back({.prompt = prompt_of(30, 2), .sampling = greedy_sampling(20), .chunk = 10});
    const auto engine = make_engine(kOptions, model);
    expected = produce(*engine, good);
    const SlotId slot = engine->acquire(bad, greedy_sampling(20)).value();
    const std::uint16_t spoilt = step_one(*engine, slot, 8).codes[0];
    for (const Production& one : expected) {
      for (const engine::CodeFrame& codes : one.codes) EXPECT_NE(codes[0], spoilt) << "choose other utterances";
    }
    const c10::InferenceMode inference;
    model->gpt.code_embedding[spoilt].fill_(std::numeric_limits<float>::quiet_NaN());
  }
};

// Such an utterance fails, but nobody else, not who shares its steps and not who has its lane at once.
TEST(TensorStepEngine, ValuesThatAreNotFiniteAreReportedAndLeaveNothingBehind) {
  const SpoiltModel spoilt;
  TensorEngineOptions options = kOptions;
  options.run_ahead = true;
  const auto engine = make_engine(options, spoilt.model);
  const SlotId slot = engine->acquire(spoilt.bad, greedy_sampling(20)).value();
  EXPECT_TRUE(step_one(*engine, slot, 8).sampled);
  const SlotId mate = engine->acquire(spoilt.good.front().prompt, spoilt.good.front().sampling).value();
  const std::array<StepWork, 2> work{{{.slot = slot}, {.slot = mate, .prefill_tokens = 3}}};
  std::array<StepOutcome, 2> outcomes;
  engine->step(work, outcomes);
  EXPECT_EQ(outcomes[0].stop, StopReason::kFailed);
  EXPECT_FALSE(outcomes[0].sampled);
  EXPECT_TRUE(outcomes[1].sampled);
  EXPECT_EQ(outcomes[1].codes, spoilt.expected.front().codes.front());
  engine->release(slot);
  engine->release(mate);
  expect_equal(produce(*engine, spoilt.good), spoilt.expected);
}

// A device that fails when it is told to, at whatever the engine asks of it next.
class FailingRuntime final : public Runtime {
 public:
  struct Plan {
    int calls_left = -1;  // until one fails; -1 = none does
    void count() {
      if (calls_left >= 0 && calls_left-- == 0) throw std::runtime_error("the device failed");
    }
  };

  explicit FailingRuntime(std::shared_ptr<Plan> plan) : plan_(std::move(plan)) {}
  bool runs_behind() const noexcept override { return false; }
  std::unique_ptr<Queue> make_queue(std::span<const c10::Device> devices) override {
    return std::make_unique<FailingQueue>(plan_, inner_->make_queue(devices));
  }
  at::Tensor host_buffer(at::IntArrayRef shape, at::ScalarType type) override { return inner_->host_buffer(shape, type); }
  void settle() override {}

 private:
  class FailingQueue final : public Queue {
   public:
    FailingQueue(std::shared_ptr<Plan> plan, std::unique_ptr<Queue> inner) : plan_(std::move(plan)), inner_(std::move(inner)) {}
    void run(Work work) override {
      plan_->count();
      inner_->run(work);
    }
    std::unique_ptr<RecordedWork> record(c10::Device device, std::function<void()> work) override {
      plan_->count();
      return inner_->record(device, std::move(work));
    }
    void beside(Work work) override {
      plan_->count();
      inner_->beside(work);
    }
    void rejoin() override {
      plan_->count();
      inner_->rejoin();
    }
    void mark() override { inner_->mark(); }
    void wait() override {
      plan_->count();
      inner_->wait();
    }

   private:
    std::shared_ptr<Plan> plan_;
    std::unique_ptr<Queue> inner_;
  };

  std::shared_ptr<Plan> plan_;
  std::unique_ptr<Runtime> inner_ = make_cpu_runtime();
};

// Fails at the n-th thing asked of the device, for every n: the slots of that call can be released, others go on where they were or say
// that they are lost, and what comes afterwards is as it should be.
TEST(TensorStepEngine, EveryFailureOfTheDeviceIsSurvived) {
  const std::vector<Utterance> good{{.prompt = prompt_of(12), .sampling = sampling_of(14, 3)},
                                    {.prompt = prompt_of(7, 4), .sampling = sampling_of(9, 4), .start = 2}};
  const auto expected = produce(*make_engine(), good);
  const UtterancePrompt waiting_prompt = prompt_of(6, 5);
  const auto waiting_codes = produce(*make_engine(), {{.prompt = waiting_prompt, .sampling = sampling_of(10, 9)}})[0].codes;
  for (const bool run_ahead : {false, true}) {
    int failures = 0, lost = 0;
    for (int calls = 0;; ++calls) {
      const auto plan = std::make_shared<FailingRuntime::Plan>();
      TensorEngineOptions options = kOptions;
      options.run_ahead = run_ahead;
      TensorStepEngine engine(shared_model(), std::make_unique<FailingRuntime>(plan), options);
      const SlotId waiting = engine.acquire(waiting_prompt, sampling_of(10, 9)).value();
      std::vector<engine::CodeFrame> codes{step_one(engine, waiting, 6).codes};
      SlotId slot = engine.acquire(prompt_of(9), sampling_of(20)).value();
      std::unique_ptr<engine::ParkedUtterance> parked;
      const auto park_and_come_back = [&] {
        parked = engine.park(slot).value();
        slot = engine.unpark(parked).value();
      };
      plan->calls_left = calls;
      bool failed = false;
      try {
        step_one(engine, slot, 5);
        park_and_come_back();
        step_one(engine, slot, 4);
        for (int i = 0; i < 3; ++i) step_one(engine, slot);
        decode_one(engine, slot, 4, false);
        park_and_come_back();
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "the device failed");
        failed = true;
      }
      plan->calls_left = -1;
      engine.release(slot);
      try {
        for (int i = 0; i < 3; ++i) codes.push_back(step_one(engine, waiting).codes);
        EXPECT_TRUE(std::equal(codes.begin(), codes.end(), waiting_codes.begin())) << calls;
      } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("lost"));
        EXPECT_TRUE(failed);
        ++lost;
      }
      engine.release(waiting);
      expect_equal(produce(engine, good), expected);
      if (!failed) break;
      ++failures;
    }
    EXPECT_GT(failures, 10);
    EXPECT_EQ(lost > 0, run_ahead) << "only a step on its way can be lost";
  }
}

// The device fails with a spoilt step on its way; that utterance is then moved to a lower lane, and its old lane goes to somebody else.
TEST(TensorStepEngine, ALaneThatWasMovedFromIsClearedToo) {
  const SpoiltModel spoilt;
  const auto plan = std::make_shared<FailingRuntime::Plan>();
  TensorEngineOptions options = kOptions;
  options.run_ahead = true;
  TensorStepEngine engine(spoilt.model, std::make_unique<FailingRuntime>(plan), options);
  std::vector<SlotId> others;
  for (std::uint32_t i = 0; i + 1 < kSlots; ++i) {
    others.push_back(engine.acquire(prompt_of(3), sampling_of(4)).value());
    step_one(engine, others.back(), 3);
  }
  const SlotId bad = engine.acquire(spoilt.bad, greedy_sampling(20)).value();
  EXPECT_TRUE(step_one(engine, bad, 8).sampled);
  plan->calls_left = 0;
  EXPECT_THROW(step_one(engine, others[0]), std::runtime_error);
  for (const SlotId slot : others) engine.release(slot);
  const SlotId low = engine.acquire(prompt_of(3), sampling_of(4)).value();
  EXPECT_TRUE(step_one(engine, low, 3).sampled);
  engine.release(low);
  engine.release(bad);
  // In the opposite order, so that a short one comes to the lane that the spoilt one was moved from.
  std::vector<Utterance> good(spoilt.good.rbegin(), spoilt.good.rend());
  const std::vector<Production> expected(spoilt.expected.rbegin(), spoilt.expected.rend());
  expect_equal(produce(engine, good), expected);
}

// Looks like a device that works behind the host's back, and counts what it records.
class CountingRuntime final : public Runtime {
 public:
  explicit CountingRuntime(std::shared_ptr<int> records) : records_(std::move(records)) {}
  bool runs_behind() const noexcept override { return true; }
  std::unique_ptr<Queue> make_queue(std::span<const c10::Device> devices) override {
    return std::make_unique<CountingQueue>(records_, inner_->make_queue(devices));
  }
  at::Tensor host_buffer(at::IntArrayRef shape, at::ScalarType type) override { return inner_->host_buffer(shape, type); }
  void settle() override {}

 private:
  class CountingQueue final : public Queue {
   public:
    CountingQueue(std::shared_ptr<int> records, std::unique_ptr<Queue> inner) : records_(std::move(records)), inner_(std::move(inner)) {}
    void run(Work work) override { inner_->run(work); }
    std::unique_ptr<RecordedWork> record(c10::Device device, std::function<void()> work) override {
      ++*records_;
      return inner_->record(device, std::move(work));
    }
    void beside(Work work) override { inner_->beside(work); }
    void rejoin() override { inner_->rejoin(); }
    void mark() override { inner_->mark(); }
    void wait() override { inner_->wait(); }

   private:
    std::shared_ptr<int> records_;
    std::unique_ptr<Queue> inner_;
  };

  std::shared_ptr<int> records_;
  std::unique_ptr<Runtime> inner_ = make_cpu_runtime();
};

TEST(TensorStepEngine, NothingIsRecordedOnceUtterancesRun) {
  const auto records = std::make_shared<int>(0);
  TensorStepEngine engine(shared_model(), std::make_unique<CountingRuntime>(records), kOptions);
  const int prepared = *records;
  EXPECT_GT(prepared, 10);
  std::vector<Utterance> runs;
  for (std::uint32_t r = 0; r < 8; ++r)
    runs.push_back(
        {.prompt = prompt_of(3 + 9 * r), .sampling = sampling_of(30 + 7 * r, r), .chunk = 1 + r % 5, .start = r < 5 ? 4 * r : 50 + 20 * r});
  expect_equal(produce(engine, runs), produce(*make_cpu_engine(), runs));
  EXPECT_EQ(*records, prepared);
}

// Operators that look at values on the host cannot be recorded; nor can a copy from memory that the device does not read.
TEST(TensorStepEngine, RecordedWorkReadsNothingBack) {
  static std::set<std::string>* names = nullptr;
  std::set<std::string> seen;
  names = &seen;
  const auto callback =
      at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        names->insert(function.name());
        return nullptr;
      }));
  produce(*make_engine(), mixed_utterances());
  at::removeCallback(callback);
  EXPECT_THAT(seen, ::testing::Contains("aten::scaled_dot_product_attention"));
  std::vector<std::string> forbidden;
  for (const char* name : {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::nonzero", "aten::masked_select",
                           "aten::equal", "aten::unique", "aten::repeat_interleave", "aten::lift_fresh", "aten::tensor"}) {
    if (seen.contains(name)) forbidden.emplace_back(name);
  }
  EXPECT_THAT(forbidden, IsEmpty());
}

TEST(TensorStepEngine, RoundedFormatsRunAndSayWhatTheyAre) {
  for (const auto& [formats, text] :
       {std::pair{TensorFormats{.compute = at::kBFloat16, .kv = at::kBFloat16, .sound = at::kHalf},
                  "bfloat16 weights, bfloat16 keys and values, float16 sound"},
        {TensorFormats{.compute = at::kHalf, .kv = at::kHalf, .sound = at::kHalf},
         "float16 weights, float16 keys and values, float16 sound"},
        {TensorFormats{.compute = at::kBFloat16, .int8_weights = true, .kv = at::kBFloat16, .sound = at::kFloat},
         "int8 weights in bfloat16, bfloat16 keys and values, float32 sound"}}) {
    const auto engine = make_engine(kOptions, load_model_tensors(formats));
    EXPECT_EQ(engine->info().precision, text);
    const auto got = produce(*engine, mixed_utterances());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].codes.size(), expected_mixed()[i].codes.size()) << text;
      EXPECT_EQ(got[i].pcm.size(), expected_mixed()[i].pcm.size()) << text;
    }
  }
}

}  // namespace
}  // namespace tts::model
