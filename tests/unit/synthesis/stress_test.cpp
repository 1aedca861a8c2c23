// From text to packets over the real scheduler and pool with the fake model: many clients at once, some of whom leave, stall or meet
// failing devices. Whoever is undisturbed gets exactly the audio it would have had alone.
#include <atomic>
#include <cctype>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tts/audio/encoder.h"
#include "tts/audio/pcm_pipeline.h"
#include "tts/dispatch/engine_pool.h"
#include "tts/scheduling/scheduler.h"
#include "tts/synthesis/synthesis.h"

#include "prompts.h"
#include "support/fake_engine.h"
#include "support/fake_front_end.h"
#include "support/packets.h"

namespace tts::synthesis {
namespace {

using std::chrono::milliseconds;
using ::testing::IsEmpty;

class StressTest : public ::testing::Test {
 protected:
  // The last piece of a sentence holds more than a cross-fade, as every real engine's does.
  static test::FakeEngineOptions engine_options() {
    test::FakeEngineOptions options;
    options.info.lookahead_steps = 8;
    return options;
  }

  void open(std::uint32_t engines, ServiceOptions options) {
    for (std::uint32_t i = 0; i < engines; ++i) {
      controls_.push_back(std::make_shared<test::FakeEngineControl>());
      if (fault_) controls_.back()->before_step = fault_;
      schedulers_.push_back(std::make_unique<scheduling::Scheduler>(
          std::make_unique<test::FakeEngine>(engine_options(), controls_.back()),
          scheduling::SchedulerOptions{.max_batch = 8, .max_queue = 64, .batch_window = milliseconds(0), .max_failures_in_a_row = 1000},
          clock_, metrics_));
    }
    std::vector<engine::UtteranceEngine*> pooled;
    for (const auto& scheduler : schedulers_) pooled.push_back(scheduler.get());
    pool_ = std::make_unique<dispatch::EnginePool>(pooled);
    voices_.resize(1);
    voices_[0].id = "v";
    voices_[0].speaker = std::make_shared<std::vector<float>>(8, 0.25F);
    service_ = std::make_unique<Service>(ServiceParts{.engine = *pool_,
                                                      .front_end = front_end_,
                                                      .voices = voices_,
                                                      .sampling = sampling_,
                                                      .sample_rate = 24000,
                                                      .clock = clock_,
                                                      .metrics = metrics_},
                                         options);
  }

  void TearDown() override {
    service_.reset();
    pool_.reset();
    schedulers_.clear();
    for (const auto& control : controls_) {
      EXPECT_THAT(control->breaches(), IsEmpty());
      EXPECT_EQ(control->slots_in_use, 0U);
    }
    EXPECT_NE(metrics_.render().find("tts_stream_buffer_bytes 0"), std::string::npos);
    EXPECT_NE(metrics_.render().find("tts_queue_length 0"), std::string::npos);
  }

  static SynthesisRequest request(std::uint32_t client) {
    SynthesisRequest request;
    request.request_id = "client-" + std::to_string(client);
    request.voice = "v";
    request.format.container = audio::Container::kPcm;
    request.seed = client;
    request.packet = milliseconds(client % 2 == 0 ? 0 : 100);
    for (std::uint32_t sentence = 0; sentence <= client % 4; ++sentence) {
      request.text += "Sentence " + std::to_string(sentence) + " of " + std::to_string(client) + std::string(client % 7, 'x') + ". ";
    }
    return request;
  }

  // The bytes this request must give, worked out without service, pool or scheduler.
  std::vector<std::uint8_t> alone(const SynthesisRequest& request) const {
    const auto prepared = front_end_.prepare(request.text, request.text_options).value();
    auto pipeline = audio::make_pcm_pipeline({}).value();
    std::vector<float> samples;
    for (std::uint32_t i = 0; i < prepared.utterances.size(); ++i) {
      const auto utterance = speech(request, voices_[0], sampling_, front_end_.speaker_token(), prepared.utterances[i],
                                    sentence_seed(*request.seed, i));
      const auto steps = static_cast<std::uint32_t>(utterance.prompt.tokens.size() * 2);
      pipeline->push(test::FakeVoice(utterance.prompt, utterance.sampling).all(steps), samples);
      pipeline->end_utterance(samples);
    }
    pipeline->finish(samples);
    auto encoder = audio::make_encoder({.format = request.format}).value();
    std::vector<std::uint8_t> bytes;
    encoder->start(bytes);
    encoder->encode(samples, bytes);
    encoder->finish(bytes);
    return bytes;
  }

  void run_clients(std::uint32_t count, const std::function<void(std::uint32_t)>& client) {
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < count; ++i) threads.emplace_back([&, i] { client(i); });
    for (auto& thread : threads) thread.join();
  }

  std::function<void(std::uint64_t)> fault_;
  SteadyClock clock_;
  observability::Metrics metrics_;
  test::FakeFrontEnd front_end_;
  engine::SamplingParams sampling_;
  std::vector<engine::Voice> voices_;
  std::vector<std::shared_ptr<test::FakeEngineControl>> controls_;
  std::vector<std::unique_ptr<scheduling::Scheduler>> schedulers_;
  std::unique_ptr<dispatch::EnginePool> pool_;
  std::unique_ptr<Service> service_;
};

TEST_F(StressTest, ThirtyTwoAtOnceSoundAsEachAlone) {
  open(1, {});
  run_clients(32, [&](std::uint32_t client) {
    const auto wanted = request(client);
    auto synthesis = service_->start(wanted);
    ASSERT_TRUE(synthesis.ok());
    EXPECT_EQ(test::joined(test::drain((*synthesis)->log())), alone(wanted));
    EXPECT_FALSE((*synthesis)->log().error().has_value());
  });
  EXPECT_EQ(controls_[0]->most_slots_in_use, 8U);
}

TEST_F(StressTest, SmallLogsAndTwoEnginesChangeNothing) {
  ServiceOptions options;
  options.log = {.high_water_bytes = 9000, .low_water_bytes = 4000};
  options.sentences_ahead = 3;
  options.max_ahead_seconds = 1;
  options.max_backlog_seconds = 1;
  open(2, options);
  run_clients(32, [&](std::uint32_t client) {
    const auto wanted = request(client);
    auto synthesis = service_->start(wanted);
    ASSERT_TRUE(synthesis.ok());
    EXPECT_EQ(test::joined(test::drain((*synthesis)->log())), alone(wanted));
  });
}

TEST_F(StressTest, AFullQueueDelaysSentencesButLosesNone) {
  ServiceOptions options;
  options.workers = 3;
  open(1, options);
  schedulers_[0]->stop();  // replaced by one with hardly any queue
  schedulers_.clear();
  controls_.assign(1, std::make_shared<test::FakeEngineControl>());
  service_.reset();
  schedulers_.push_back(std::make_unique<scheduling::Scheduler>(
      std::make_unique<test::FakeEngine>(engine_options(), controls_[0]),
      scheduling::SchedulerOptions{.max_batch = 2, .max_queue = 2, .batch_window = milliseconds(0)}, clock_, metrics_));
  pool_ = std::make_unique<dispatch::EnginePool>(std::vector<engine::UtteranceEngine*>{schedulers_[0].get()});
  service_ = std::make_unique<Service>(ServiceParts{.engine = *pool_,
                                                    .front_end = front_end_,
                                                    .voices = voices_,
                                                    .sampling = sampling_,
                                                    .sample_rate = 24000,
                                                    .clock = clock_,
                                                    .metrics = metrics_},
                                       options);
  std::atomic<int> complete{0};
  run_clients(12, [&](std::uint32_t client) {
    const auto wanted = request(client);
    auto synthesis = service_->start(wanted);
    ASSERT_TRUE(synthesis.ok());
    const auto bytes = test::joined(test::drain((*synthesis)->log()));
    if (const auto error = (*synthesis)->log().error()) {
      EXPECT_EQ(error->code, ErrorCode::kQueueFull);
      EXPECT_TRUE(bytes.empty()) << "only a request that has not begun may be refused";
      return;
    }
    EXPECT_EQ(bytes, alone(wanted));
    ++complete;
  });
  EXPECT_GE(complete, 1);
}

TEST_F(StressTest, ClientsThatLeaveAtAnyPointDisturbNobody) {
  ServiceOptions options;
  options.log = {.high_water_bytes = 20000, .low_water_bytes = 9000};
  open(2, options);
  run_clients(32, [&](std::uint32_t client) {
    for (std::uint32_t round = 0; round < 4; ++round) {
      const auto wanted = request(client + 32 * round);
      auto started = service_->start(wanted);
      ASSERT_TRUE(started.ok());
      auto synthesis = std::move(started).value();
      const std::uint32_t what = (client + round) % 4;
      if (what == 0) {
        EXPECT_EQ(test::joined(test::drain(synthesis->log())), alone(wanted));
      } else if (what == 1) {
        synthesis.reset();  // at once
      } else if (what == 2) {
        test::wait_packet(synthesis->log(), client % 2 == 0 ? 1 : 1 + client % 4);  // what the log holds without a reader
        synthesis.reset();  // in the middle
      } else {
        test::wait_packet(synthesis->log(), 1);
        synthesis->log().close();
      }
    }
  });
}

TEST_F(StressTest, FailingDevicesEndOnlyWhomTheyHit) {
  fault_ = [](std::uint64_t call) {
    if (call % 37 == 0) throw std::runtime_error("injected");
  };
  open(2, {});
  run_clients(32, [&](std::uint32_t client) {
    const auto wanted = request(client);
    auto synthesis = service_->start(wanted);
    ASSERT_TRUE(synthesis.ok());
    const auto bytes = test::joined(test::drain((*synthesis)->log()));
    const auto whole = alone(wanted);
    if (const auto error = (*synthesis)->log().error()) {
      EXPECT_EQ(error->code, ErrorCode::kEngineFailure);
      ASSERT_LE(bytes.size(), whole.size());
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), whole.begin())) << "what was sent before the failure was right";
    } else {
      EXPECT_EQ(bytes, whole);
    }
  });
}

TEST_F(StressTest, TextInPiecesIsSpokenWhole) {
  ServiceOptions options;
  options.log = {.high_water_bytes = 40000, .low_water_bytes = 20000};
  open(2, options);
  run_clients(32, [&](std::uint32_t client) {
    auto wanted = request(client);
    const std::string text = std::exchange(wanted.text, {});
    wanted.incremental = true;
    wanted.max_buffer_delay = milliseconds(0);
    auto synthesis = service_->start(wanted).value();
    std::uint32_t flushes = 0;
    const auto write = [&] {
      for (std::size_t at = 0, piece = 0; at < text.size(); ++piece) {
        const std::size_t length = 1 + (client * 7 + piece * 5) % 11;
        EXPECT_TRUE(synthesis->append_text(std::string_view(text).substr(at, length)).ok());
        at += length;
        if (client % 4 == 1 && piece % 3 == 0) {
          synthesis->flush_text();
          ++flushes;
        }
        SpeechChange change;
        change.voice = "v";
        const bool changed = client % 8 != 7 || synthesis->change(change).ok();
        EXPECT_TRUE(changed);
        if (client % 8 == 3 && piece == 4) return;
      }
      synthesis->end_text();
    };
    std::thread writer(write);
    if (client % 8 == 3) {  // leaves in the middle
      writer.join();
      synthesis.reset();
      return;
    }
    const auto packets = test::drain(synthesis->log());
    writer.join();
    EXPECT_FALSE(synthesis->log().error().has_value());
    std::string spoken;
    std::uint64_t end = 0;
    std::uint32_t sentences = 0, flushed = 0;
    for (const auto& packet : packets) {
      for (const auto& mark : packet->marks) {
        if (mark.kind == resume::Mark::Kind::kFlushed) {
          ++flushed;
          EXPECT_GE(mark.end, end);
          continue;
        }
        EXPECT_EQ(mark.index, sentences++);
        EXPECT_GE(mark.begin, end);
        end = mark.end;
        spoken += text.substr(mark.begin, mark.end - mark.begin);
      }
    }
    EXPECT_EQ(flushed, flushes);
    const auto letters = [](std::string words) {
      std::erase_if(words, [](unsigned char c) { return std::isalnum(c) == 0; });
      return words;
    };
    EXPECT_EQ(letters(spoken), letters(text));
    const auto report = synthesis->report();
    EXPECT_EQ(report.sentences, sentences);
    EXPECT_EQ(test::joined(packets).size(), report.samples * 2);
    EXPECT_TRUE(flushes > 0 || sentences == client % 4 + 1) << sentences;
    EXPECT_EQ(synthesis->characters(), text.size());
  });
}

TEST_F(StressTest, TheServiceMayEndInTheMiddle) {
  open(2, {});
  std::vector<std::unique_ptr<Synthesis>> running;
  for (std::uint32_t client = 0; client < 32; ++client) running.push_back(service_->start(request(client)).value());
  test::wait_packet(running[0]->log(), 1);
  service_.reset();
  for (const auto& synthesis : running) EXPECT_TRUE(synthesis->log().ended());
}

}  // namespace
}  // namespace tts::synthesis
