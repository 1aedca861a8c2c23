// The routes that speak: whole and streamed replies, errors, disconnects, slow readers, shutdown.

#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "server_fixture.h"

namespace tts::net {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

Error error(ErrorCode code, std::string message, int retry_ms = 0) {
  return {.code = code, .message = std::move(message), .param = {}, .retry_after = milliseconds(retry_ms)};
}

TEST_F(ServerTest, WholeReplyHasALength) {
  start();
  auto client = connect();
  client.send(post("/synthesize", R"({"text":"hi","seed":7})", "X-Request-Id: r1\r\n"));
  const auto voice = speech_.wait_for_voice();
  ASSERT_TRUE(voice);
  EXPECT_TRUE(voice->request.whole);
  EXPECT_EQ(voice->request.text, "hi");
  EXPECT_EQ(voice->request.request_id, "r1");
  EXPECT_EQ(voice->request.deadline, clock_.now() + milliseconds(1'800'000));
  voice->say("RIFFdata");
  voice->log.finish();
  const auto reply = client.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "RIFFdata");
  EXPECT_EQ(reply.header("content-length"), "8");
  EXPECT_EQ(reply.header("content-type"), "audio/wav");
  EXPECT_EQ(reply.header("x-seed"), "7");
  EXPECT_EQ(reply.header("x-synthetic-audio"), "true");
  EXPECT_EQ(reply.header("x-request-id"), "r1");
  EXPECT_EQ(reply.header("x-sample-rate"), "");
  EXPECT_TRUE(voice->wait_until_released());
  client.send(get("/v1/voices"));
  EXPECT_EQ(client.read_reply().status, 200) << "the connection is kept";
}

TEST_F(ServerTest, WholeReplyWaitsForTheEndOfTheLog) {
  start();
  auto [client, voice] = ask("/synthesize");
  ASSERT_TRUE(voice);
  voice->say("RIFFdata");
  voice->log.fail(error(ErrorCode::kDeadlineExceeded, "late"));
  EXPECT_EQ(client->read_reply().status, 504) << "a whole reply can still say that it failed";
}

TEST_F(ServerTest, LargeWholeReplyArrivesComplete) {
  start();
  auto [client, voice] = ask("/synthesize");
  ASSERT_TRUE(voice);
  std::string audio(3'000'000, 'a');
  for (std::size_t i = 0; i < audio.size(); ++i) audio[i] = static_cast<char>(i * 31 % 251);
  voice->say(audio);
  voice->log.finish();
  EXPECT_EQ(client->read_reply().body, audio);
}

TEST_F(ServerTest, StreamLeavesPacketByPacket) {
  start();
  auto [client, voice] = ask();
  ASSERT_TRUE(voice);
  EXPECT_FALSE(voice->request.whole);
  voice->say("first");
  const auto head = client->read_reply_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("transfer-encoding"), "chunked");
  EXPECT_EQ(head.header("content-type"), "audio/pcm");
  EXPECT_EQ(head.header("x-sample-rate"), "24000");
  EXPECT_EQ(head.header("x-channels"), "1");
  EXPECT_EQ(head.header("x-bit-depth"), "16");
  EXPECT_EQ(head.header("x-seed"), "4711");
  EXPECT_EQ(client->read_chunk(), "first") << "before the second packet exists";
  voice->say("second");
  EXPECT_EQ(client->read_chunk(), "second");
  voice->log.finish();
  EXPECT_EQ(client->read_chunk(), "");
  EXPECT_TRUE(voice->wait_until_released());
  client->send(get("/v1/voices"));
  EXPECT_EQ(client->read_reply().status, 200);
}

TEST_F(ServerTest, HttpOneZeroStreamsUntilTheClose) {
  start();
  auto [client, voice] = ask("/synthesize_stream", "HTTP/1.0");
  ASSERT_TRUE(voice);
  voice->say("one");
  voice->say("two");
  voice->log.finish();
  const auto reply = client->read_reply();
  EXPECT_EQ(reply.version, "HTTP/1.0");
  EXPECT_EQ(reply.header("transfer-encoding"), "");
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_EQ(reply.body, "onetwo");
}

TEST_F(ServerTest, OpenAiRouteStreams) {
  start();
  auto client = connect();
  client.send(post("/v1/audio/speech", R"({"model":"tts-1","input":"hello","voice":"alloy","surprise":1})"));
  const auto voice = speech_.wait_for_voice();
  ASSERT_TRUE(voice);
  EXPECT_EQ(voice->request.voice, "mei");
  EXPECT_FALSE(voice->request.whole);
  voice->say("ID3");
  voice->log.finish();
  const auto reply = client.read_reply();
  EXPECT_EQ(reply.header("content-type"), "audio/mpeg");
  EXPECT_EQ(reply.header("warning"), "299 - \"ignored unknown field surprise\"");
  EXPECT_EQ(reply.body, "ID3");
}

TEST_F(ServerTest, OpenAiServerSentEvents) {
  start();
  auto client = connect();
  client.send(
      post("/v1/audio/speech", R"({"model":"tts-1","input":"hello","voice":"alloy","response_format":"pcm","stream_format":"sse"})"));
  const auto voice = speech_.wait_for_voice();
  ASSERT_TRUE(voice);
  voice->say("Man");
  const auto head = client.read_reply_head();
  EXPECT_EQ(head.header("content-type"), "text/event-stream");
  EXPECT_EQ(head.header("x-sample-rate"), "");
  EXPECT_EQ(client.read_chunk(), "data: {\"type\":\"speech.audio.delta\",\"audio\":\"TWFu\"}\n\n");
  voice->log.finish();
  EXPECT_EQ(client.read_chunk(),
            "data: {\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":5,\"output_tokens\":40,\"total_tokens\":45}}\n\n");
  EXPECT_EQ(client.read_chunk(), "");
}

TEST_F(ServerTest, RefusalsHaveTheirStatus) {
  struct Row {
    Error refusal;
    int status;
    const char* retry_after;
  };
  start();
  auto client = connect();
  for (const auto& row : std::vector<Row>{{error(ErrorCode::kQueueFull, "busy", 1500), 429, "2"},
                                          {error(ErrorCode::kUnavailable, "stopping"), 503, "1"},
                                          {error(ErrorCode::kTooLarge, "long"), 413, ""},
                                          {error(ErrorCode::kDeadlineExceeded, "late"), 504, ""}}) {
    speech_.refuse(row.refusal);
    for (const auto* path : {"/synthesize", "/synthesize_stream"}) {
      client.send(post(path, R"({"text":"hi"})"));
      const auto reply = client.read_reply();
      EXPECT_EQ(reply.status, row.status);
      EXPECT_EQ(reply.header("retry-after"), row.retry_after);
      EXPECT_EQ(reply.header("content-type"), "application/json");
      EXPECT_EQ(json::parse(reply.body).at("error").at("message"), row.refusal.message);
    }
  }
}

TEST_F(ServerTest, BadBodiesNameTheField) {
  start();
  auto client = connect();
  client.send(post("/synthesize", R"({"text":"hi","speed":9})"));
  const auto reply = client.read_reply();
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(json::parse(reply.body).at("error").at("param"), "speed");
  client.send(post("/synthesize", "{\"text\":\"" + std::string(1001, 'a') + "\"}"));
  EXPECT_EQ(client.read_reply().status, 413);
  EXPECT_EQ(speech_.started(), 0U);
}

TEST_F(ServerTest, FailureBeforeTheFirstPacketHasItsStatus) {
  start();
  for (const auto* path : {"/synthesize", "/synthesize_stream"}) {
    auto [client, voice] = ask(path);
    ASSERT_TRUE(voice);
    voice->log.fail(error(ErrorCode::kEngineFailure, "secret device detail"));
    const auto reply = client->read_reply();
    EXPECT_EQ(reply.status, 500);
    EXPECT_THAT(reply.body, Not(HasSubstr("secret")));
    EXPECT_THAT(reply.body, HasSubstr(reply.header("x-request-id"))) << "the id under which the log has it";
  }
  auto [client, voice] = ask();
  ASSERT_TRUE(voice);
  voice->log.finish();  // no audio at all
  EXPECT_EQ(client->read_reply().status, 500);
}

TEST_F(ServerTest, DefectsBecomeAReply) {
  start();
  speech_.break_with("secret pointer");
  auto client = connect();
  client.send(post("/synthesize", R"({"text":"hi"})"));
  const auto reply = client.read_reply();
  EXPECT_EQ(reply.status, 500);
  EXPECT_THAT(reply.body, Not(HasSubstr("secret")));
  client.send(get("/v1/voices"));
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(ServerTest, FailureInTheStreamLeavesItUnfinished) {
  start();
  auto [client, voice] = ask();
  ASSERT_TRUE(voice);
  voice->say("first");
  voice->log.fail(error(ErrorCode::kEngineFailure, "device lost"));
  const auto reply = client->read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "first");
  EXPECT_FALSE(reply.complete) << "a client must see that the audio is cut short";
  EXPECT_TRUE(voice->wait_until_released());
}

TEST_F(ServerTest, FailureInServerSentEventsIsAnEvent) {
  start();
  auto client = connect();
  client.send(post("/v1/audio/speech", R"({"model":"tts-1","input":"hello","voice":"alloy","stream_format":"sse"})"));
  const auto voice = speech_.wait_for_voice();
  ASSERT_TRUE(voice);
  voice->say("a");
  voice->log.fail(error(ErrorCode::kDeadlineExceeded, "late"));
  client.read_reply_head();
  client.read_chunk();
  EXPECT_THAT(client.read_chunk().value_or(""), HasSubstr("speech.audio.error"));
  EXPECT_FALSE(client.read_chunk());
}

TEST_F(ServerTest, LeavingWhileWaitingCancels) {
  start();
  for (const auto* path : {"/synthesize", "/synthesize_stream"}) {
    for (const bool reset : {false, true}) {
      auto [client, voice] = ask(path);
      ASSERT_TRUE(voice);
      if (reset) {
        client->reset();
      } else {
        client->close();
      }
      EXPECT_TRUE(voice->wait_until_released()) << path;
    }
  }
  server_->drain(kHang);
  EXPECT_THAT(metrics_.render(), HasSubstr("tts_requests_total{code=\"499\",route=\"/synthesize\"} 2\n"));
  EXPECT_THAT(metrics_.render(), HasSubstr("tts_connections 0\n"));
}

TEST_F(ServerTest, LeavingInTheStreamCancels) {
  start();
  for (const bool reset : {false, true}) {
    auto [client, voice] = ask();
    ASSERT_TRUE(voice);
    voice->say("first");
    client->read_reply_head();
    client->read_chunk();
    if (reset) {
      client->reset();
    } else {
      client->close();
    }
    EXPECT_TRUE(voice->wait_until_released());
  }
  server_->drain(kHang);
  EXPECT_THAT(metrics_.render(), HasSubstr("tts_requests_total{code=\"499\",route=\"/synthesize_stream\"} 2\n"));
}

TEST_F(ServerTest, LeavingBehindAPipelinedRequestIsStillNoticed) {
  start();
  auto client = connect();
  client.send(post("/synthesize_stream", R"({"text":"hi"})") + get("/v1/voices"));
  const auto voice = speech_.wait_for_voice();
  ASSERT_TRUE(voice);
  client.close();
  EXPECT_TRUE(voice->wait_until_released());
}

TEST_F(ServerTest, PipelinedRequestWaitsForTheStream) {
  start();
  auto client = connect();
  client.send(post("/synthesize_stream", R"({"text":"hi"})") + get("/v1/voices"));
  const auto voice = speech_.wait_for_voice();
  ASSERT_TRUE(voice);
  voice->say("audio");
  voice->log.finish();
  EXPECT_EQ(client.read_reply().body, "audio");
  EXPECT_THAT(client.read_reply().body, HasSubstr("mei"));
}

TEST_F(ServerTest, SlowReaderFillsOnlyItsLogAndIsCut) {
  options_.http.write_timeout = milliseconds(300);
  options_.http.send_buffer_bytes = 16 * 1024;
  start();
  RawClient client(server_->port(), 4096);
  client.send(post("/synthesize_stream", R"({"text":"hi","format":"pcm"})"));
  const auto voice = speech_.wait_for_voice();
  ASSERT_TRUE(voice);
  const std::string packet(32 * 1024, 'x');
  bool below = true;
  for (int i = 0; i < 64 && below; ++i) below = voice->say(packet);  // 2 MiB: more than any socket buffer of this size takes
  EXPECT_FALSE(below) << "the producer is told to pause";
  EXPECT_TRUE(voice->wait_until_released()) << "and after the write time the client is cut";
}

TEST_F(ServerTest, ReaderThatCatchesUpDrainsTheLog) {
  options_.http.send_buffer_bytes = 16 * 1024;
  start();
  RawClient client(server_->port(), 4096);
  client.send(post("/synthesize_stream", R"({"text":"hi","format":"pcm"})"));
  const auto voice = speech_.wait_for_voice();
  ASSERT_TRUE(voice);
  std::promise<void> drained;
  voice->log.set_drain_callback([&drained] { drained.set_value(); });
  const std::string packet(32 * 1024, 'x');
  std::size_t sent = 0;
  for (bool below = true; below; sent += packet.size()) below = voice->say(packet);
  std::thread reader([&client, &sent] { EXPECT_EQ(client.read_reply().body.size(), sent); });
  EXPECT_EQ(drained.get_future().wait_for(kHang), std::future_status::ready);
  voice->log.finish();
  reader.join();
}

TEST_F(ServerTest, StuckSynthesisEndsWithItsDeadline) {
  options_.http.deadline_grace = milliseconds(50);
  start();
  auto client = connect();
  client.send(post("/synthesize_stream", R"({"text":"hi","timeout_ms":1})"));
  const auto voice = speech_.wait_for_voice();
  ASSERT_TRUE(voice);
  EXPECT_EQ(voice->request.deadline, clock_.now() + milliseconds(1));
  EXPECT_EQ(client.read_reply().status, 504) << "also when the engine never says so";
}

TEST_F(ServerTest, DrainLetsStreamsFinish) {
  start();
  auto idle = connect();
  idle.send(get("/v1/voices"));
  idle.read_reply();
  auto [client, voice] = ask();
  ASSERT_TRUE(voice);
  voice->say("first");
  client->read_reply_head();
  client->read_chunk();

  auto drained = std::async(std::launch::async, [this] { return server_->drain(kHang); });
  EXPECT_TRUE(idle.at_end()) << "idle connections close at once";
  RawClient admin(server_->admin_port());
  admin.send(get("/readyz"));
  EXPECT_EQ(admin.read_reply().status, 503);
  EXPECT_THROW(connect(), boost::system::system_error) << "the port is closed";
  EXPECT_FALSE(voice->released());

  voice->say("second");
  EXPECT_EQ(client->read_chunk(), "second");
  voice->log.finish();
  EXPECT_EQ(client->read_chunk(), "");
  EXPECT_TRUE(client->at_end());
  EXPECT_TRUE(drained.get());
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(ServerTest, DrainCutsAfterItsGrace) {
  start();
  auto [client, voice] = ask();
  ASSERT_TRUE(voice);
  EXPECT_FALSE(server_->drain(milliseconds(1)));
  EXPECT_TRUE(voice->wait_until_released());
  EXPECT_TRUE(client->at_end());
}

TEST_F(ServerTest, CutEndsADrain) {
  start();
  auto [client, voice] = ask();
  ASSERT_TRUE(voice);
  auto drained = std::async(std::launch::async, [this] { return server_->drain(kHang); });
  server_->cut();
  EXPECT_FALSE(drained.get());
  EXPECT_TRUE(voice->wait_until_released());
}

TEST_F(ServerTest, StopLeavesNoSynthesis) {
  start();
  auto [first_client, first] = ask();
  auto [second_client, second] = ask("/synthesize");
  ASSERT_TRUE(first && second);
  first->say("a");
  server_->stop();
  EXPECT_TRUE(first->released());
  EXPECT_TRUE(second->released());
  first->say("late packets go nowhere");
  first->log.finish();
  server_->stop();
}

TEST_F(ServerTest, ManyClientsAtOnce) {
  start();
  constexpr int kClients = 16;
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([this, i] {
      auto client = connect();
      client.send(post("/synthesize_stream", json{{"text", "hi"}, {"seed", i}}.dump()));
      const auto reply = client.read_reply();
      EXPECT_EQ(reply.body, "seed" + std::to_string(i) + "end");
    });
  }
  for (int i = 0; i < kClients; ++i) {
    const auto voice = speech_.wait_for_voice();
    ASSERT_TRUE(voice);
    voice->say("seed" + std::to_string(voice->request.seed.value_or(0)));
    voice->say("end");
    voice->log.finish();
  }
  for (auto& client : clients) client.join();
}

}  // namespace
}  // namespace tts::net
