// Streaming against the whole utterance, with the small random model and with the bundled voice, in each number format.
// Tolerance against plain ATen: 1e-5 in float32, 40 dB of signal to noise in bfloat16. Between chunk sizes, neighbours and threads:
// equal bits.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/compute_pool.h"
#include "sound_model.h"
#include "stream_decoder.h"
#include "support/golden_data.h"
#include "torch_reference.h"

namespace tts::model {
namespace {

using testing::golden_manifest;
using testing::max_difference;
using testing::signal_to_noise;

constexpr std::uint32_t kSlots = 4, kMaxSteps = 24;
constexpr float kTolerance = 1e-5F;
constexpr double kMinSignalToNoise = 40.0;

struct Utterance {
  engine::MelPath path = engine::MelPath::kHidden;
  std::uint32_t steps = 0;
  std::vector<float> hidden;
  std::vector<engine::CodeFrame> codes;
};

// One way to run the same model: a decoder with its pool.
class Bench {
 public:
  Bench(const SoundModel& model, std::uint32_t workers, std::uint32_t max_steps = kMaxSteps)
      : pool_(workers), decoder_(model, pool_, {.slots = kSlots, .max_steps = max_steps}), width_(2 * model.decoder.inputs()) {}

  StreamDecoder& decoder() { return decoder_; }

  DecodePush make_push(std::uint32_t slot, const Utterance& utterance, std::uint32_t first, std::uint32_t steps, std::vector<float>& pcm) {
    DecodePush push;
    push.slot = slot;
    push.steps = steps;
    push.last = first + steps == utterance.steps;
    if (utterance.path == engine::MelPath::kHidden) {
      push.hidden = utterance.hidden.data() + first * width_;
    } else {
      push.codes = utterance.codes.data() + first;
    }
    pcm.assign(decoder_.max_samples(steps), NAN);
    push.pcm = pcm;
    return push;
  }

  // Samples of the utterance pushed alone, `chunk(first)` steps at a time.
  template <class Chunk>
  std::vector<float> decode(const Utterance& utterance, Chunk&& chunk, std::uint32_t slot = 0,
                            std::uint32_t lookahead = engine::kExactLookahead) {
    std::vector<float> out, pcm;
    decoder_.open(slot, utterance.path);
    for (std::uint32_t first = 0; first < utterance.steps;) {
      const std::uint32_t steps = std::min(utterance.steps - first, chunk(first));
      DecodePush push = make_push(slot, utterance, first, steps, pcm);
      push.lookahead = lookahead;
      decoder_.push({&push, 1});
      EXPECT_LE(push.samples, decoder_.max_samples(steps));
      out.insert(out.end(), pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(push.samples));
      first += steps;
    }
    return out;
  }

 private:
  ops::ComputePool pool_;
  StreamDecoder decoder_;
  std::size_t width_;
};

struct Subject {
  std::string name;
  engine::Manifest manifest;
  SoundModel model;
};

Subject load_subject(const std::string& name) {
  const bool nano = name.starts_with("nano");
  engine::Manifest manifest = nano ? engine::read_manifest(TTS_SOURCE_DIR "/models/nano") : golden_manifest();
  SoundModel model =
      load_sound_model(manifest, nano, name.ends_with("bfloat16") ? ops::WeightFormat::kBfloat16 : ops::WeightFormat::kFloat32);
  return {name, std::move(manifest), std::move(model)};
}

Subject& subject(const std::string& name) {
  static std::map<std::string, Subject> subjects;
  const auto found = subjects.find(name);
  return found != subjects.end() ? found->second : subjects.emplace(name, load_subject(name)).first->second;
}

class StreamTest : public ::testing::TestWithParam<std::string> {
 protected:
  Utterance utterance(std::uint32_t steps, engine::MelPath path, std::uint32_t seed = 1) const {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Utterance u{path, steps, std::vector<float>(steps * 2 * model().decoder.inputs()), std::vector<engine::CodeFrame>(steps)};
    for (float& value : u.hidden) value = normal(random);
    for (engine::CodeFrame& frame : u.codes) {
      for (std::uint16_t& code : frame) code = static_cast<std::uint16_t>(random() % Gfsq::kCodes);
    }
    return u;
  }

  std::vector<float> torch_decode(const Utterance& u) const {
    const TorchReference reference(subject(GetParam()).manifest);
    if (u.path == engine::MelPath::kHidden) return reference.from_hidden(u.hidden);
    std::vector<float> embedded(u.steps * model().dvae->quantizer().dim());
    for (std::uint32_t t = 0; t < u.steps; ++t) model().dvae->quantizer().embed(u.codes[t], embedded.data() + t * model().dvae->quantizer().dim());
    return reference.from_embedded(embedded);
  }

  const SoundModel& model() const { return subject(GetParam()).model; }

  void expect_as_torch(const std::vector<float>& ours, const Utterance& u) const {
    const std::vector<float> expected = torch_decode(u);
    if (model().format == ops::WeightFormat::kFloat32) {
      EXPECT_LE(max_difference(ours, expected), kTolerance) << u.steps << " steps";
    } else {
      EXPECT_GE(signal_to_noise(expected, ours), kMinSignalToNoise) << u.steps << " steps";
    }
  }

  static constexpr auto kWhole = [](std::uint32_t) { return 1U << 20; };
};

constexpr engine::MelPath kPaths[] = {engine::MelPath::kHidden, engine::MelPath::kCodes};

TEST_P(StreamTest, WholeUtteranceIsWhatTorchComputes) {
  for (const engine::MelPath path : kPaths) {
    const Utterance u = utterance(48, path);
    Bench bench(model(), 2, 64);
    const std::vector<float> ours = bench.decode(u, kWhole);
    ASSERT_EQ(ours.size(), (2 * 48 - 1) * 256U);
    expect_as_torch(ours, u);
  }
}

TEST_P(StreamTest, EveryChunkSizeGivesTheSameBits) {
  for (const engine::MelPath path : kPaths) {
    const Utterance u = utterance(45, path);
    Bench bench(model(), 1, 64);
    const std::vector<float> whole = bench.decode(u, kWhole);
    for (std::uint32_t chunk = 1; chunk <= 24; ++chunk) {
      EXPECT_EQ(max_difference(bench.decode(u, [&](std::uint32_t) { return chunk; }, chunk % kSlots), whole), 0) << chunk;
    }
    std::mt19937 random(5);
    EXPECT_EQ(max_difference(bench.decode(u, [&](std::uint32_t) { return 1 + static_cast<std::uint32_t>(random() % 24); }), whole), 0);
  }
}

TEST_P(StreamTest, UtterancesShorterThanTheReceptiveFieldAreExact) {
  Bench bench(model(), 1);
  for (const engine::MelPath path : kPaths) {
    for (const std::uint32_t steps : {1U, 2U, 3U, 4U, 7U, 15U}) {
      const Utterance u = utterance(steps, path, steps);
      const std::vector<float> whole = bench.decode(u, kWhole);
      ASSERT_EQ(whole.size(), (2 * steps - 1) * 256U);
      expect_as_torch(whole, u);
      EXPECT_EQ(max_difference(bench.decode(u, [](std::uint32_t) { return 1U; }), whole), 0) << steps;
      EXPECT_EQ(max_difference(bench.decode(u, [](std::uint32_t) { return 2U; }), whole), 0) << steps;
    }
  }
}

TEST_P(StreamTest, AFlushWithoutStepsGivesTheRest) {
  Bench bench(model(), 1);
  const Utterance u = utterance(40, engine::MelPath::kHidden);
  const std::vector<float> whole = bench.decode(u, [](std::uint32_t) { return 20U; });
  std::vector<float> out, pcm;
  bench.decoder().open(0, u.path);
  for (const std::uint32_t first : {0U, 20U, 40U}) {
    DecodePush push = bench.make_push(0, u, first, std::min(20U, 40 - first), pcm);
    push.last = first == 40;
    pcm.assign(bench.decoder().max_samples(push.steps), NAN);
    push.pcm = pcm;
    bench.decoder().push({&push, 1});
    out.insert(out.end(), pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(push.samples));
  }
  EXPECT_EQ(max_difference(out, whole), 0);
}

TEST_P(StreamTest, AnEmptyUtteranceGivesNothing) {
  Bench bench(model(), 1);
  std::vector<float> pcm;
  bench.decoder().open(0, engine::MelPath::kHidden);
  DecodePush push = bench.make_push(0, utterance(0, engine::MelPath::kHidden), 0, 0, pcm);
  bench.decoder().push({&push, 1});
  EXPECT_EQ(push.samples, 0U);
}

TEST_P(StreamTest, TheFirstSampleComesAsSoonAsTheReceptiveFieldAllows) {
  Bench bench(model(), 1);
  const Utterance u = utterance(60, engine::MelPath::kHidden);
  std::vector<float> pcm;
  bench.decoder().open(0, u.path);
  for (std::uint32_t t = 0; t < u.steps - 1; ++t) {
    DecodePush push = bench.make_push(0, u, t, 1, pcm);
    bench.decoder().push({&push, 1});
    EXPECT_EQ(push.samples, t < bench.decoder().lookahead_steps() ? 0U : bench.decoder().samples_per_step()) << t;
  }
}

TEST_P(StreamTest, NeighboursAndThreadsDoNotChangeAStream) {
  std::vector<Utterance> utterances;
  std::vector<std::vector<float>> alone;
  Bench one(model(), 1), three(model(), 3);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    utterances.push_back(utterance(20 + 11 * i, kPaths[i % 2], 100 + i));
    alone.push_back(one.decode(utterances.back(), [](std::uint32_t) { return 24U; }));
  }
  // Streams of both paths start at different times, take chunks of their own sizes and end inside a common push.
  std::vector<std::vector<float>> together(kSlots), pcm(kSlots);
  std::vector<std::uint32_t> at(kSlots, 0);
  std::mt19937 random(9);
  for (int round = 0; std::any_of(at.begin(), at.end(),
                                  [&, i = 0](std::uint32_t n) mutable { return n < utterances[static_cast<std::size_t>(i++)].steps; });
       ++round) {
    std::vector<DecodePush> work;
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      const std::uint32_t left = utterances[slot].steps - at[slot];
      if (left == 0 || static_cast<std::uint32_t>(round) < slot) continue;
      if (at[slot] == 0) three.decoder().open(slot, utterances[slot].path);
      const std::uint32_t steps = std::min(left, 1 + static_cast<std::uint32_t>(random() % kMaxSteps));
      work.push_back(three.make_push(slot, utterances[slot], at[slot], steps, pcm[slot]));
      at[slot] += steps;
    }
    three.decoder().push(work);
    for (const DecodePush& push : work) {
      together[push.slot].insert(together[push.slot].end(), push.pcm.begin(), push.pcm.begin() + static_cast<std::ptrdiff_t>(push.samples));
    }
  }
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) EXPECT_EQ(max_difference(together[slot], alone[slot]), 0) << slot;
}

// Whatever lookaheads are asked for in whatever order: no sample is lost or repeated, the exact ones are the whole utterance's, and the
// early ones those of an utterance that ends at the newest step.
TEST_P(StreamTest, AnySequenceOfLookaheadsGivesEverySampleOnce) {
  Bench bench(model(), 2, 128);
  StreamDecoder& decoder = bench.decoder();
  const auto exact_lookahead = static_cast<std::int64_t>(decoder.lookahead_steps());
  std::mt19937 random(17);
  std::size_t early_samples = 0, exact_samples = 0;
  for (std::uint32_t round = 0; round < 12; ++round) {
    const Utterance u = utterance(1 + static_cast<std::uint32_t>(random() % 100), kPaths[round % 2], round);
    const std::vector<float> whole = bench.decode(u, kWhole, 1);
    decoder.open(0, u.path);
    std::size_t written = 0;
    std::vector<float> pcm;
    for (std::uint32_t at = 0; at < u.steps;) {
      const std::uint32_t steps = std::min<std::uint32_t>(u.steps - at, static_cast<std::uint32_t>(random() % 13));
      DecodePush push = bench.make_push(0, u, at, steps, pcm);
      const std::uint32_t choice = static_cast<std::uint32_t>(random() % 4);
      if (choice > 0) push.lookahead = static_cast<std::uint32_t>(random() % (decoder.lookahead_steps() + 2)) / choice;
      decoder.push({&push, 1});
      at += steps;

      // In hops: what is exact by now, and what was asked for.
      const std::int64_t frames = 2 * at, total = frames - 1;
      const bool early = !push.last && push.lookahead < decoder.lookahead_steps();
      const std::int64_t exact = push.last ? total : std::max<std::int64_t>(0, frames - 2 * exact_lookahead);
      const std::int64_t wanted =
          early ? std::clamp<std::int64_t>(frames - 2 * std::int64_t{push.lookahead}, 0, std::max<std::int64_t>(0, total)) : exact;
      const std::size_t end = std::max(written, static_cast<std::size_t>(std::max(wanted, exact)) * 256);
      if (u.path == engine::MelPath::kHidden) {  // the other path may look less far ahead and have more
        ASSERT_EQ(push.samples, end - written) << "step " << at << " lookahead " << push.lookahead;
      }
      if (push.samples > 0) {
        Utterance ended = u;
        ended.steps = at;
        const std::vector<float> as_if_ended = bench.decode(ended, kWhole, 1);
        for (std::size_t i = 0; i < push.samples; ++i) {
          const std::size_t sample = written + i;
          ASSERT_EQ(pcm[i], as_if_ended[sample]) << "sample " << sample << " of " << at << " steps";
          if (sample < static_cast<std::size_t>(exact) * 256) {
            ASSERT_EQ(pcm[i], whole[sample]) << "sample " << sample << " of " << at << " steps";
            ++exact_samples;
          } else {
            ++early_samples;
          }
        }
        written += push.samples;
      }
    }
    ASSERT_EQ(written, whole.size());
  }
  EXPECT_GT(early_samples, 50'000U);
  EXPECT_GT(exact_samples, 50'000U);
}

TEST_P(StreamTest, LessLookaheadIsSoonerAndNotFarFromTheWhole) {
  const Utterance u = utterance(80, engine::MelPath::kHidden);
  Bench bench(model(), 1);
  const std::vector<float> whole = bench.decode(u, [](std::uint32_t) { return 24U; });
  double last_snr = -10.0;
  for (const std::uint32_t lookahead : {0U, 4U, 8U, 12U}) {
    const std::vector<float> early = bench.decode(u, [](std::uint32_t) { return 4U; }, 0, lookahead);
    ASSERT_EQ(early.size(), whole.size());
    const double snr = signal_to_noise(whole, early);
    EXPECT_GT(snr, last_snr) << lookahead;
    last_snr = snr;
  }
  EXPECT_GT(last_snr, 45.0);
}

TEST_P(StreamTest, ExactDecodingAfterAnEarlyStartCostsNoMore) {
  const Utterance u = utterance(200, engine::MelPath::kHidden);
  const auto cost_of_the_end = [&](std::uint32_t lookahead) {
    Bench bench(model(), 1);
    std::vector<float> pcm;
    bench.decoder().open(0, u.path);
    std::uint64_t before = 0;
    for (std::uint32_t at = 0; at < 196; at += 4) {
      if (at == 100) before = bench.decoder().multiply_adds();
      DecodePush push = bench.make_push(0, u, at, 4, pcm);
      if (at < 40) push.lookahead = lookahead;
      bench.decoder().push({&push, 1});
    }
    return bench.decoder().multiply_adds() - before;
  };
  EXPECT_EQ(cost_of_the_end(8), cost_of_the_end(engine::kExactLookahead));
}

TEST_P(StreamTest, AReopenedSlotRemembersNothing) {
  Bench bench(model(), 1);
  const Utterance u = utterance(30, engine::MelPath::kCodes, 3), other = utterance(37, engine::MelPath::kCodes, 4);
  const std::vector<float> fresh = bench.decode(u, [](std::uint32_t) { return 6U; });
  std::vector<float> pcm;
  bench.decoder().open(0, other.path);  // left in the middle, as after a cancel
  DecodePush push = bench.make_push(0, other, 0, 24, pcm);
  bench.decoder().push({&push, 1});
  EXPECT_EQ(max_difference(bench.decode(u, [](std::uint32_t) { return 6U; }), fresh), 0);
}

TEST_P(StreamTest, CostGrowsWithTheLengthOnly) {
  const auto cost = [&](std::uint32_t steps, std::uint32_t chunk) {
    Bench bench(model(), 1);
    bench.decode(utterance(steps, engine::MelPath::kHidden), [&](std::uint32_t) { return chunk; });
    return static_cast<double>(bench.decoder().multiply_adds());
  };
  EXPECT_NEAR(cost(240, 24) / cost(120, 24), 2.0, 0.03);
  EXPECT_LT(cost(120, 8) / cost(120, 24), 1.1);  // small chunks compute a few rows between convolutions' neighbours twice, no more
}

INSTANTIATE_TEST_SUITE_P(Models, StreamTest, ::testing::Values("golden", "nano", "golden_bfloat16", "nano_bfloat16"),
                         [](const auto& subject_info) { return subject_info.param; });

}  // namespace
}  // namespace tts::model
