// Streaming on tensors against the CPU engine's streaming decoder: the same number of samples from every push, the same samples up
// to rounding. Tolerance in float32: 1e-5, as between the CPU engine and the reference.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "sound_model.h"
#include "stream_decoder.h"
#include "support/golden_data.h"
#include "torch/batch_sizes.h"
#include "torch/tensor_stream_decoder.h"

namespace tts::model {
namespace {

constexpr std::uint32_t kSlots = 5, kMaxSteps = 24;
constexpr float kTolerance = 1e-5F;

struct Utterance {
  engine::MelPath path = engine::MelPath::kHidden;
  std::uint32_t steps = 0;
  std::vector<float> hidden;
  std::vector<engine::CodeFrame> codes;
};

engine::Manifest manifest_of(const std::string& name) {
  return name == "nano" ? engine::read_manifest(TTS_SOURCE_DIR "/models/nano") : testing::golden_manifest();
}

// The decoder with a ring that the tests fill.
class TensorBench {
 public:
  TensorBench(const engine::Manifest& manifest, at::ScalarType type = at::kFloat, std::vector<std::uint32_t> batch_sizes = {1, 2, 4})
      : sound_(load_sound_tensors(manifest, type, c10::kCPU, false)),
        runtime_(make_cpu_runtime()),
        queue_(runtime_->make_queue({})),
        ring_{.hidden = at::zeros({(kSlots + 1) * kCapacity, 2 * sound_.decoder.inputs()}, at::kFloat),
              .codes = at::zeros({(kSlots + 1) * kCapacity, 4}, at::kLong),
              .capacity = kCapacity},
        decoder_(sound_, ring_, c10::kCPU, *runtime_, *queue_,
                 {.slots = kSlots, .max_steps = kMaxSteps, .batch_sizes = std::move(batch_sizes)}) {
    at::set_num_threads(1);
  }

  TensorStreamDecoder& decoder() { return decoder_; }

  // Puts steps first .. first + count - 1 where a language model would have left them.
  void fill(std::uint32_t slot, const Utterance& u, std::uint32_t first, std::uint32_t count) {
    const std::int64_t width = ring_.hidden.size(1);
    for (std::uint32_t t = first; t < first + count; ++t) {
      const std::int64_t row = ring_.row(slot, t);
      std::copy_n(u.hidden.data() + t * width, width, ring_.hidden.data_ptr<float>() + row * width);
      std::copy(u.codes[t].begin(), u.codes[t].end(), ring_.codes.data_ptr<std::int64_t>() + row * 4);
    }
  }

  TensorDecodePush make_push(std::uint32_t slot, const Utterance& u, std::uint32_t first, std::uint32_t count, std::vector<float>& pcm) {
    fill(slot, u, first, count);
    pcm.assign(decoder_.max_samples(count), NAN);
    return {.slot = slot, .steps = count, .last = first + count == u.steps, .pcm = pcm};
  }

  template <class Chunk>
  std::vector<float> decode(const Utterance& u, Chunk&& chunk, std::uint32_t slot = 0) {
    std::vector<float> out, pcm;
    decoder_.open(slot, u.path);
    for (std::uint32_t first = 0; first < u.steps;) {
      const std::uint32_t count = std::min<std::uint32_t>(u.steps - first, chunk(first));
      TensorDecodePush push = make_push(slot, u, first, count, pcm);
      decoder_.push({&push, 1});
      out.insert(out.end(), pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(push.samples));
      first += count;
    }
    return out;
  }

 private:
  static constexpr std::int64_t kCapacity = kMaxSteps + 1;

  SoundTensors sound_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Queue> queue_;
  StepRing ring_;
  TensorStreamDecoder decoder_;
};

class TensorStreamDecoderTest : public ::testing::TestWithParam<std::string> {
 protected:
  TensorStreamDecoderTest()
      : manifest_(manifest_of(GetParam())),
        model_(load_sound_model(manifest_, false, ops::WeightFormat::kFloat32)),
        plain_(model_, pool_, {.slots = kSlots, .max_steps = 64}) {}

  Utterance utterance(std::uint32_t steps, engine::MelPath path, std::uint32_t seed = 1) const {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Utterance u{path, steps, std::vector<float>(steps * 2 * model_.decoder.inputs()), std::vector<engine::CodeFrame>(steps)};
    for (float& value : u.hidden) value = normal(random);
    for (engine::CodeFrame& frame : u.codes) {
      for (std::uint16_t& code : frame) code = static_cast<std::uint16_t>(random() % Gfsq::kCodes);
    }
    return u;
  }

  // What the CPU engine makes of it in one piece.
  std::vector<float> plain(const Utterance& u) {
    std::vector<float> pcm(plain_.max_samples(u.steps));
    plain_.open(0, u.path);
    DecodePush push;
    push.steps = u.steps;
    push.last = true;
    push.hidden = u.hidden.data();
    push.codes = u.codes.data();
    push.pcm = pcm;
    plain_.push({&push, 1});
    pcm.resize(push.samples);
    return pcm;
  }

  engine::Manifest manifest_;
  SoundModel model_;
  ops::ComputePool pool_{1};
  StreamDecoder plain_;
};

constexpr engine::MelPath kPaths[] = {engine::MelPath::kHidden, engine::MelPath::kCodes};

TEST_P(TensorStreamDecoderTest, HasTheLookaheadOfTheCpuEngine) {
  TensorBench bench(manifest_);
  EXPECT_EQ(bench.decoder().lookahead_steps(), plain_.lookahead_steps());
  EXPECT_EQ(bench.decoder().samples_per_step(), plain_.samples_per_step());
}

TEST_P(TensorStreamDecoderTest, EveryChunkSizeGivesTheCpuEnginesSamples) {
  TensorBench bench(manifest_);
  for (const engine::MelPath path : kPaths) {
    const Utterance u = utterance(60, path);
    const std::vector<float> expected = plain(u);
    ASSERT_EQ(expected.size(), (2U * 60 - 1) * 256);
    for (const std::uint32_t chunk : {1U, 2U, 3U, 5U, 8U, 13U, 24U}) {
      EXPECT_LE(testing::max_difference(bench.decode(
                                            u, [&](std::uint32_t) { return chunk; }, chunk % kSlots),
                                        expected),
                kTolerance)
          << chunk;
    }
    std::mt19937 random(5);
    EXPECT_LE(testing::max_difference(bench.decode(u, [&](std::uint32_t) { return 1 + static_cast<std::uint32_t>(random() % kMaxSteps); }),
                                      expected),
              kTolerance);
  }
}

TEST_P(TensorStreamDecoderTest, UtterancesShorterThanTheReceptiveField) {
  TensorBench bench(manifest_);
  for (const engine::MelPath path : kPaths) {
    for (const std::uint32_t steps : {1U, 2U, 3U, 7U}) {
      const Utterance u = utterance(steps, path, steps);
      EXPECT_LE(testing::max_difference(bench.decode(u, [](std::uint32_t) { return 2U; }), plain(u)), kTolerance) << steps;
    }
  }
}

// Push by push, with a lookahead that changes: as many samples, and the same.
TEST_P(TensorStreamDecoderTest, EachPushWritesWhatTheCpuEnginesDoes) {
  TensorBench bench(manifest_);
  for (const engine::MelPath path : kPaths) {
    const Utterance u = utterance(160, path);
    bench.decoder().open(1, path);
    plain_.open(1, path);
    std::mt19937 random(7);
    std::vector<float> pcm, plain_pcm(plain_.max_samples(kMaxSteps));
    for (std::uint32_t first = 0; first < u.steps;) {
      const std::uint32_t count = std::min<std::uint32_t>(u.steps - first, 1 + static_cast<std::uint32_t>(random() % kMaxSteps));
      TensorDecodePush push = bench.make_push(1, u, first, count, pcm);
      if (random() % 3 != 0) push.lookahead = static_cast<std::uint32_t>(random() % (plain_.lookahead_steps() + 4));
      bench.decoder().push({&push, 1});
      DecodePush expected;
      expected.slot = 1;
      expected.steps = count;
      expected.last = push.last;
      expected.lookahead = push.lookahead;
      expected.hidden = u.hidden.data() + first * 2 * model_.decoder.inputs();
      expected.codes = u.codes.data() + first;
      expected.pcm = plain_pcm;
      plain_.push({&expected, 1});
      ASSERT_EQ(push.samples, expected.samples) << first << ", lookahead " << push.lookahead;
      EXPECT_LE(testing::max_difference(std::span(pcm).first(push.samples), std::span(plain_pcm).first(push.samples)), kTolerance) << first;
      first += count;
    }
  }
}

TEST_P(TensorStreamDecoderTest, AFlushWithoutStepsGivesTheRest) {
  TensorBench bench(manifest_);
  const Utterance u = utterance(40, engine::MelPath::kHidden);
  std::vector<float> out, pcm;
  bench.decoder().open(2, u.path);
  for (const auto& [first, count] : {std::pair{0U, 20U}, {20U, 20U}, {40U, 0U}}) {
    TensorDecodePush push = bench.make_push(2, u, first, count, pcm);
    push.last = count == 0;
    bench.decoder().push({&push, 1});
    out.insert(out.end(), pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(push.samples));
  }
  EXPECT_LE(testing::max_difference(out, plain(u)), kTolerance);
}

TEST_P(TensorStreamDecoderTest, NothingComesOfNothing) {
  TensorBench bench(manifest_);
  bench.decoder().push({});
  std::vector<float> pcm;
  bench.decoder().open(0, engine::MelPath::kHidden);
  TensorDecodePush push = bench.make_push(0, utterance(1, engine::MelPath::kHidden), 0, 0, pcm);
  for (const bool last : {false, true}) {
    push.last = last;
    push.samples = 9;
    bench.decoder().push({&push, 1});
    EXPECT_EQ(push.samples, 0U);
  }
}

// Streams of both paths start at different times, take chunks of their own sizes and end inside a common push; there are more of them
// than one pass takes, and one slot had another stream before.
TEST_P(TensorStreamDecoderTest, StreamsInOnePassDoNotMix) {
  TensorBench bench(manifest_);
  bench.decode(
      utterance(33, engine::MelPath::kHidden, 99), [](std::uint32_t) { return 9U; }, 3);
  std::vector<float> left_behind;
  bench.decoder().open(4, engine::MelPath::kCodes);
  TensorDecodePush cut = bench.make_push(4, utterance(30, engine::MelPath::kCodes, 98), 0, 11, left_behind);
  bench.decoder().push({&cut, 1});

  std::vector<Utterance> utterances;
  for (std::uint32_t i = 0; i < kSlots; ++i) utterances.push_back(utterance(20 + 13 * i, kPaths[i % 2], 100 + i));
  std::vector<std::vector<float>> together(kSlots), pcm(kSlots);
  std::array<std::uint32_t, kSlots> at{};
  std::mt19937 random(9);
  for (std::uint32_t round = 0, finished = 0; finished < kSlots; ++round) {
    std::vector<TensorDecodePush> work;
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      const std::uint32_t left = utterances[slot].steps - at[slot];
      if (left == 0 || round < slot) continue;
      if (at[slot] == 0) bench.decoder().open(slot, utterances[slot].path);
      const std::uint32_t count = std::min(left, 1 + static_cast<std::uint32_t>(random() % kMaxSteps));
      work.push_back(bench.make_push(slot, utterances[slot], at[slot], count, pcm[slot]));
      at[slot] += count;
      finished += work.back().last;
    }
    bench.decoder().push(work);
    for (const TensorDecodePush& push : work) {
      together[push.slot].insert(together[push.slot].end(), push.pcm.begin(), push.pcm.begin() + static_cast<std::ptrdiff_t>(push.samples));
    }
  }
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    EXPECT_LE(testing::max_difference(together[slot], plain(utterances[slot])), kTolerance) << slot;
  }
}

// With less lookahead samples come earlier, as if nothing followed the newest step; each comes once.
TEST_P(TensorStreamDecoderTest, ShortLookaheadWritesWhatATruncatedUtteranceWouldSay) {
  TensorBench bench(manifest_);
  const std::uint32_t per_step = bench.decoder().samples_per_step();
  for (const engine::MelPath path : kPaths) {
    const Utterance u = utterance(50, path);
    for (const std::uint32_t lookahead : {0U, 1U, 4U, 9U}) {
      std::vector<float> out, pcm;
      bench.decoder().open(0, path);
      for (std::uint32_t first = 0; first < u.steps;) {
        const std::uint32_t count = std::min(7U, u.steps - first), known = first + count;
        TensorDecodePush push = bench.make_push(0, u, first, count, pcm);
        push.lookahead = lookahead;
        bench.decoder().push({&push, 1});
        Utterance truncated = u;
        truncated.steps = known;
        const std::vector<float> expected = plain(truncated);
        const std::size_t end =
            push.last ? expected.size()
                      : std::min<std::size_t>(expected.size(), known > lookahead ? (known - lookahead) * std::size_t{per_step} : 0);
        ASSERT_EQ(out.size() + push.samples, end) << "lookahead " << lookahead << ", " << known << " steps";
        EXPECT_LE(testing::max_difference(std::span(pcm).first(push.samples), std::span(expected).subspan(out.size(), push.samples)),
                  kTolerance);
        out.insert(out.end(), pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(push.samples));
        first = known;
      }
    }
  }
}

TEST_P(TensorStreamDecoderTest, LookaheadMayChangeFromPushToPush) {
  TensorBench bench(manifest_);
  const Utterance u = utterance(80, engine::MelPath::kHidden);
  const std::vector<float> whole = plain(u);
  std::vector<float> out, pcm;
  bench.decoder().open(0, u.path);
  std::mt19937 random(3);
  std::size_t exact_from = 0;
  for (std::uint32_t first = 0; first < u.steps; first += 5) {
    TensorDecodePush push = bench.make_push(0, u, first, 5, pcm);
    push.lookahead = first < 40 ? static_cast<std::uint32_t>(random() % 60) : engine::kExactLookahead;
    bench.decoder().push({&push, 1});
    out.insert(out.end(), pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(push.samples));
    if (first < 40) exact_from = out.size();
  }
  ASSERT_EQ(out.size(), whole.size());
  EXPECT_LE(testing::max_difference(std::span(out).subspan(exact_from), std::span(whole).subspan(exact_from)), kTolerance);
}

// Signal to noise against float32. Half precision is what GPUs take by default; bfloat16 costs as much and rounds eight times as far.
TEST_P(TensorStreamDecoderTest, ReducedPrecisionKeepsItsDistance) {
  const Utterance u = utterance(60, engine::MelPath::kHidden);
  const std::vector<float> expected = plain(u);
  for (const auto& [type, least] : {std::pair{at::kHalf, 50.0}, {at::kBFloat16, 35.0}}) {
    TensorBench bench(manifest_, type);
    const std::vector<float> got = bench.decode(u, [](std::uint32_t) { return 12U; });
    ASSERT_EQ(got.size(), expected.size());
    double signal = 0, noise = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      signal += double{expected[i]} * expected[i];
      noise += (double{got[i]} - expected[i]) * (double{got[i]} - expected[i]);
    }
    EXPECT_GE(10 * std::log10(signal / noise), least) << c10::toString(type);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TensorStreamDecoderTest, ::testing::Values("golden", "nano"),
                         [](const auto& subject) { return subject.param; });

TEST(BatchSizes, PreferredOnesUpToTheLargest) {
  using Sizes = std::vector<std::uint32_t>;
  EXPECT_EQ(make_batch_sizes({}, 1, 16), (Sizes{1, 2, 4, 8, 16}));
  EXPECT_EQ(make_batch_sizes({}, 1, 12), (Sizes{1, 2, 4, 8, 12}));
  EXPECT_EQ(make_batch_sizes({}, 4, 3), (Sizes{3}));
  EXPECT_EQ(make_batch_sizes(Sizes{8, 3, 8, 100, 0}, 1, 16), (Sizes{3, 8, 16}));
  EXPECT_EQ(batch_size_for(Sizes{1, 4, 16}, 0), 1U);
  EXPECT_EQ(batch_size_for(Sizes{1, 4, 16}, 4), 4U);
  EXPECT_EQ(batch_size_for(Sizes{1, 4, 16}, 5), 16U);
}

}  // namespace
}  // namespace tts::model
