// From the socket to the engine's interface and back, with the real synthesis service between.

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server_fixture.h"
#include "support/fake_front_end.h"
#include "support/fake_utterance_engine.h"

namespace tts::net {
namespace {

class WholePathTest : public testing::Test {
 protected:
  WholePathTest() {
    spdlog::set_level(spdlog::level::off);
    options_.http.port = options_.admin.port = 0;
    options_.http.send_buffer_bytes = 16 * 1024;
    readiness_.set_warmed_up();
    server_ = std::make_unique<Server>(
        ServerParts{.start = [this](synthesis::SynthesisRequest request) { return service_.start(std::move(request)); },
                    .api = api_,
                    .readiness = readiness_,
                    .metrics = metrics_,
                    .clock = clock_},
        options_);
    server_->open();
  }
  ~WholePathTest() override {
    server_->stop();
    engine_.stop();
  }

  // The utterance's state after the engine was told to stop it.
  void answer_cancel() {
    engine_.wait_until([](const auto& all) { return !all.empty() && all[0].cancelled; });
    engine_.fail(0, {.code = ErrorCode::kCancelled, .message = "cancelled", .param = {}, .retry_after = {}});
  }

  test::ManualClock clock_;
  observability::Metrics metrics_;
  test::FakeUtteranceEngine engine_;
  test::FakeFrontEnd front_end_;
  std::vector<engine::Voice> voices_{{.id = "mei", .title = "Mei", .gender = "female", .languages = {"zh"}, .speaker = nullptr}};
  engine::SamplingParams sampling_;
  synthesis::Service service_{{.engine = engine_,
                               .front_end = front_end_,
                               .voices = voices_,
                               .sampling = sampling_,
                               .sample_rate = 24000,
                               .clock = clock_,
                               .metrics = metrics_},
                              {}};
  api::SpeechApi api_{small_catalog()};
  Readiness readiness_{engine_, clock_, std::chrono::seconds(10)};
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

const std::string kAsk = post("/synthesize_stream", R"({"text":"Hello.","format":"pcm"})");

TEST_F(WholePathTest, EverySampleArrives) {
  RawClient client(server_->port());
  client.send(kAsk);
  engine_.wait_submitted(1);
  std::vector<float> samples(24000);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<float>(i % 2000) / 4000.0F;
  engine_.pcm(0, samples);
  engine_.done(0, {.stop = engine::StopReason::kEndToken, .steps = 47, .samples = samples.size(), .text_tokens = {}});
  const auto reply = client.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.body.size(), samples.size() * 2);
  EXPECT_EQ(reply.body.substr(2000 * 2, 2000 * 2), reply.body.substr(4000 * 2, 2000 * 2)) << "the period of the input";
}

TEST_F(WholePathTest, LeavingCancelsTheUtterance) {
  RawClient client(server_->port());
  client.send(kAsk);
  engine_.wait_submitted(1);
  client.close();
  answer_cancel();
}

TEST_F(WholePathTest, LeavingInTheStreamCancelsTheUtterance) {
  RawClient client(server_->port());
  client.send(kAsk);
  engine_.wait_submitted(1);
  engine_.pcm(0, std::vector<float>(24000, 0.1F));
  EXPECT_EQ(client.read_reply_head().status, 200);
  client.close();
  answer_cancel();
}

TEST_F(WholePathTest, SlowReaderPausesItsUtteranceOnly) {
  RawClient client(server_->port(), 4096);
  client.send(kAsk);
  engine_.wait_submitted(1);
  RawClient other(server_->port());
  other.send(kAsk);
  engine_.wait_submitted(2);
  constexpr int kSeconds = 30;  // 1.4 MB of PCM: more than log and socket buffers hold
  const std::vector<float> second(24000, 0.1F);
  for (int i = 0; i < kSeconds; ++i) engine_.pcm(0, second);
  engine_.wait_until([](const auto& all) { return all[0].paused; });
  EXPECT_FALSE(engine_.utterance(1).paused);

  engine_.pcm(1, second);
  engine_.done(1);
  EXPECT_EQ(other.read_reply().body.size(), second.size() * 2) << "the other listener hears on";

  std::thread reader([&client] { EXPECT_EQ(client.read_reply().body.size(), std::size_t{kSeconds} * 24000 * 2); });
  engine_.wait_until([](const auto& all) { return !all[0].paused; });
  engine_.done(0);
  reader.join();
}

TEST_F(WholePathTest, TextWithoutSpeechIsTheClientsError) {
  RawClient client(server_->port());
  client.send(post("/synthesize_stream", R"({"text":"..."})"));
  const auto reply = client.read_reply();
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, testing::HasSubstr("\"param\":\"text\""));
}

}  // namespace
}  // namespace tts::net
