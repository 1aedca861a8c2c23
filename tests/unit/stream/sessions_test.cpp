#include "tts/stream/sessions.h"

#include <algorithm>
#include <deque>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fake_synthesis.h"
#include "support/manual_clock.h"

namespace tts::stream {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

api::Catalog catalog() {
  api::Catalog catalog;
  catalog.version = "9.9.9";
  catalog.model = "nano";
  catalog.voices = {{.id = "xiaobei", .title = "Xiaobei", .gender = "female", .languages = {"zh", "en"}}};
  catalog.default_voice = "xiaobei";
  return catalog;
}

struct ReceivedFrame {
  bool last = false;
  std::uint16_t context = 0;
  std::uint32_t seq = 0;
  std::uint64_t first_sample = 0;
  std::vector<std::uint8_t> bytes;
};

std::uint64_t little_endian(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8U | bytes[i - 1];
  return value;
}

// A client on a socket that takes whatever there is, until it is told not to.
class Client {
 public:
  explicit Client(std::unique_ptr<Attachment> attachment) : attachment_(std::move(attachment)) {}

  void send(const api::StreamApi& api, const json& message) {
    auto parsed = api.parse(message.dump());
    if (parsed.ok()) {
      attachment_->receive(std::move(parsed).value());
    } else {
      attachment_->refuse(parsed.error(), api.context_of(message.dump()));
    }
  }

  // Takes at most so many items; false = told to close.
  bool read(std::size_t most = ~std::size_t{0}) {
    while (most-- > 0) {
      Next next = attachment_->next(0);
      look_again_in = next.look_again_in;
      switch (next.kind) {
        case Next::Kind::kNothing: return true;
        case Next::Kind::kClose: closed = next.code; return false;
        case Next::Kind::kMessage: messages.push_back(json::parse(next.text)); break;
        case Next::Kind::kFrame: {
          const std::span header(next.header);
          EXPECT_EQ(header[0], 1U);
          ReceivedFrame frame{.last = header[1] == 1,
                              .context = static_cast<std::uint16_t>(little_endian(header.subspan(2, 2))),
                              .seq = static_cast<std::uint32_t>(little_endian(header.subspan(4, 4))),
                              .first_sample = little_endian(header.subspan(8, 8)),
                              .bytes = {next.payload.begin(), next.payload.end()}};
          audio[frame.context].insert(audio[frame.context].end(), frame.bytes.begin(), frame.bytes.end());
          last_seq = frame.seq;
          frames.push_back(std::move(frame));
        }
      }
    }
    return true;
  }

  std::vector<std::string> types() const {
    std::vector<std::string> all;
    for (const auto& message : messages) all.push_back(message["type"]);
    return all;
  }
  json last(const std::string& type) const {
    for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
      if ((*message)["type"] == type) return *message;
    }
    return {};
  }
  void leave() {
    attachment_->closed_by_client();
    attachment_.reset();
  }
  void lose_link() { attachment_.reset(); }

  std::vector<json> messages;
  std::vector<ReceivedFrame> frames;
  std::map<std::uint16_t, std::vector<std::uint8_t>> audio;
  std::uint32_t last_seq = 0;
  Duration look_again_in{};
  std::optional<CloseCode> closed;

 private:
  std::unique_ptr<Attachment> attachment_;
};

class SessionsTest : public testing::Test {
 protected:
  explicit SessionsTest(StreamOptions options = {}) : options_(std::move(options)) {}

  Client connect(const std::string& address = "10.0.0.1") {
    auto attachment = sessions().open(address, [this] { ++wakes; });
    EXPECT_TRUE(attachment.ok());
    Client client(std::move(attachment).value());
    client.read();
    return client;
  }
  Sessions& sessions() {
    if (!sessions_) {
      sessions_ = std::make_unique<Sessions>(StreamParts{.start = [this](synthesis::SynthesisRequest request) { return start(std::move(request)); },
                                                         .catalog = catalog_,
                                                         .clock = clock,
                                                         .metrics = metrics,
                                                         .post = [this](std::function<void()> task) { posted_.push_back(std::move(task)); }},
                                             options_);
    }
    return *sessions_;
  }
  void run_posted() {
    while (!posted_.empty()) {
      const auto task = std::move(posted_.front());
      posted_.pop_front();
      task();
    }
  }
  // Starts a context of 16-bit PCM at 24 kHz.
  std::shared_ptr<Speaker> speak(Client& client, const std::string& context, json more = json::object()) {
    json message{{"type", "start"}, {"context", context}, {"format", "pcm_s16le"}};
    message.update(more);
    const auto before = speakers.size();
    client.send(api, message);
    client.read();
    return speakers.size() > before ? speakers.back() : nullptr;
  }
  Client resume(const Client& lost, std::uint32_t seq, std::optional<std::string> token = {}) {
    const json ready = lost.last("ready");
    auto client = connect();
    client.send(api, {{"type", "resume"}, {"session", ready["session"]}, {"token", token.value_or(ready["resume_token"])}, {"seq", seq}});
    return client;
  }
  bool exports(const std::string& line) const { return metrics.render().find(line) != std::string::npos; }

  StreamOptions options_;
  const api::Catalog catalog_ = catalog();
  const api::StreamApi api{catalog_};
  test::ManualClock clock;
  observability::Metrics metrics;
  std::vector<std::shared_ptr<Speaker>> speakers;
  std::optional<Error> refusal;
  int wakes = 0;

 private:
  Result<std::unique_ptr<synthesis::Synthesis>> start(synthesis::SynthesisRequest request) {
    if (refusal) return *refusal;
    speakers.push_back(std::make_shared<Speaker>(std::move(request)));
    return std::unique_ptr<synthesis::Synthesis>(std::make_unique<FakeSynthesis>(speakers.back()));
  }

  std::deque<std::function<void()>> posted_;
  std::unique_ptr<Sessions> sessions_;
};

constexpr resume::Mark sentence(std::uint32_t index, std::uint64_t begin, std::uint64_t end, std::uint64_t first_sample) {
  return {.kind = resume::Mark::Kind::kSentence, .index = index, .begin = begin, .end = end, .first_sample = first_sample};
}

TEST_F(SessionsTest, AConversationFromTextToAudio) {
  auto client = connect();
  EXPECT_THAT(client.types(), ElementsAre("ready"));
  const auto speaker = speak(client, "a", {{"voice", "xiaobei"}, {"speed", 1.25}});
  ASSERT_NE(speaker, nullptr);
  EXPECT_TRUE(speaker->request.incremental);
  EXPECT_EQ(speaker->request.speed, 1.25);
  EXPECT_EQ(client.last("started")["id"], 1);
  EXPECT_EQ(client.last("started")["sample_rate"], 24000);
  EXPECT_EQ(client.last("started")["seed"], 4711);
  client.send(api, {{"type", "text"}, {"context", "a"}, {"text", "Hello "}});
  client.send(api, {{"type", "text"}, {"context", "a"}, {"text", "there."}, {"flush", true}});
  client.send(api, {{"type", "end"}, {"context", "a"}});
  EXPECT_EQ(speaker->asked, "Hello there.|flush|end");

  speaker->speak(2000, {sentence(0, 0, 12, 0)});
  speaker->speak(1000, {{.kind = resume::Mark::Kind::kFlushed, .index = 0, .begin = 0, .end = 12, .first_sample = 0}});
  speaker->log.finish();
  run_posted();
  client.read();
  EXPECT_THAT(client.types(), ElementsAre("ready", "started", "sentence", "flushed", "done"));
  EXPECT_EQ(client.last("sentence")["end"], 12);
  EXPECT_EQ(client.last("done")["samples"], 3000);
  EXPECT_EQ(client.last("done")["characters"], 12);
  EXPECT_EQ(client.audio[1].size(), 6000U);
  std::uint32_t seq = 0;
  for (const auto& frame : client.frames) {
    EXPECT_EQ(frame.seq, ++seq);
    EXPECT_EQ(frame.last, &frame == &client.frames.back());
  }
  EXPECT_TRUE(client.frames.back().bytes.empty());
  EXPECT_TRUE(speaker->let_go);
  EXPECT_TRUE(exports("tts_contexts_total{end=\"done\"} 1"));
}

TEST_F(SessionsTest, SeveralContextsEachWithItsOwnId) {
  auto client = connect();
  const auto a = speak(client, "a"), b = speak(client, "b");
  a->speak(1000);
  b->speak(1000);
  a->speak(1000);
  run_posted();
  client.read();
  EXPECT_EQ(client.audio[1].size(), 4000U);
  EXPECT_EQ(client.audio[2].size(), 2000U);
  client.send(api, {{"type", "text"}, {"context", "b"}, {"text", "x"}});
  EXPECT_EQ(a->asked, "");
  EXPECT_EQ(b->asked, "x");
}

TEST_F(SessionsTest, WrongMessagesAreNamedAndChangeNothing) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  client.send(api, {{"type", "sing"}});
  client.send(api, {{"type", "text"}, {"context", "nobody"}, {"text", "x"}});
  EXPECT_EQ(speak(client, "a"), nullptr);
  client.send(api, {{"type", "resume"}, {"session", "x"}, {"token", "y"}, {"seq", 0}});
  client.read();
  std::vector<std::string> codes;
  for (const auto& message : client.messages) {
    if (message["type"] == "error") codes.push_back(message["code"]);
  }
  EXPECT_THAT(codes, testing::UnorderedElementsAre("invalid_message", "unknown_context", "duplicate_context", "invalid_message"));
  EXPECT_FALSE(speaker->let_go);
  client.send(api, {{"type", "text"}, {"context", "a"}, {"text", "still here"}});
  EXPECT_EQ(speaker->asked, "still here");
}

TEST_F(SessionsTest, TooManyWrongMessagesEndTheSocket) {
  auto client = connect();
  for (std::uint32_t i = 0; i <= options_.max_wrong_messages; ++i) client.send(api, {{"type", "sing"}});
  EXPECT_FALSE(client.read());
  EXPECT_EQ(client.closed, CloseCode::kTooManyErrors);
}

TEST_F(SessionsTest, ContextsAreLimited) {
  auto client = connect();
  for (std::uint32_t i = 0; i < options_.max_contexts; ++i) EXPECT_NE(speak(client, std::to_string(i)), nullptr);
  EXPECT_EQ(speak(client, "one more"), nullptr);
  EXPECT_EQ(client.last("error")["code"], "too_many_contexts");
  EXPECT_EQ(client.last("error")["context"], "one more");
}

TEST_F(SessionsTest, ARefusedStartSaysWhenToComeBack) {
  auto client = connect();
  refusal = Error{ErrorCode::kQueueFull, "busy", {}, milliseconds(1500)};
  EXPECT_EQ(speak(client, "a"), nullptr);
  EXPECT_EQ(client.last("error")["code"], "queue_full");
  EXPECT_EQ(client.last("error")["retry_after_ms"], 1500);
}

TEST_F(SessionsTest, TextThatIsRefusedLeavesTheContextRunning) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  speaker->refusal = Error{ErrorCode::kTooLarge, "too much", "text", {}};
  client.send(api, {{"type", "text"}, {"context", "a"}, {"text", "x"}});
  client.read();
  EXPECT_EQ(client.last("error")["code"], "text_too_long");
  EXPECT_EQ(client.last("error")["ended"], false);
  speaker->refusal.reset();
  client.send(api, {{"type", "text"}, {"context", "a"}, {"text", "y"}});
  EXPECT_EQ(speaker->asked, "y");
}

TEST_F(SessionsTest, AnEngineErrorEndsItsContextOnly) {
  auto client = connect();
  const auto a = speak(client, "a"), b = speak(client, "b");
  a->speak(500);
  a->log.fail({ErrorCode::kEngineFailure, "broken", {}, {}});
  run_posted();
  client.read();
  EXPECT_EQ(client.last("error")["code"], "engine_failure");
  EXPECT_EQ(client.last("error")["context"], "a");
  EXPECT_TRUE(a->let_go);
  EXPECT_FALSE(b->let_go);
}

TEST_F(SessionsTest, ACancelDropsWhatWasNotSentAndSaysWhatWas) {
  auto client = connect();
  const auto a = speak(client, "a"), b = speak(client, "b");
  a->speak(24000, {sentence(0, 0, 10, 0)});
  a->speak(24000, {sentence(1, 11, 21, 24000)});
  b->speak(1500);
  run_posted();
  client.read(1 + 16 + 1 + 8);  // the first sentence and half of the second, each with its message
  client.send(api, {{"type", "cancel"}, {"context", "a"}});
  EXPECT_TRUE(a->let_go) << "at once";
  client.read();
  EXPECT_EQ(client.last("cancelled")["samples"], 36000);
  EXPECT_NEAR(static_cast<double>(client.last("cancelled")["characters"]), 16, 1);
  EXPECT_EQ(client.audio[1].size(), 72000U) << "nothing of it follows";
  EXPECT_EQ(client.audio[2].size(), 3000U);
  std::uint32_t seq = 0;
  for (const auto& frame : client.frames) EXPECT_EQ(frame.seq, ++seq);
  EXPECT_NE(speak(client, "a"), nullptr) << "the name is free again";
  EXPECT_EQ(client.last("started")["id"], 3);
}

TEST_F(SessionsTest, ACancelMayTellWhatWasHeard) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  speaker->speak(24000, {sentence(0, 0, 10, 0)});
  speaker->speak(24000, {sentence(1, 11, 21, 24000)});
  run_posted();
  client.read();
  client.send(api, {{"type", "cancel"}, {"context", "a"}, {"samples", 12000}});
  client.read();
  EXPECT_EQ(client.last("cancelled")["characters"], 5);
  EXPECT_EQ(client.last("cancelled")["samples"], 48000);
}

TEST_F(SessionsTest, UpdateGoesToTheContext) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  client.send(api, {{"type", "update"}, {"context", "a"}, {"speed", 1.5}});
  ASSERT_EQ(speaker->changes.size(), 1U);
  EXPECT_EQ(speaker->changes[0].speed, 1.5);
}

TEST_F(SessionsTest, AnAckTellsWhenTheListenerRunsDry) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  speaker->speak(24000);
  run_posted();
  client.read();
  ASSERT_EQ(client.last_seq, 16U);
  client.send(api, {{"type", "ack"}, {"seq", 8}, {"buffered_ms", 300}});
  EXPECT_EQ(speaker->runs_dry_at, clock.now() + milliseconds(300 + 500)) << "with the half second after frame 8";
}

TEST_F(SessionsTest, ALinkThatBreaksIsTakenUpBitForBit) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  speaker->speak(9000);
  run_posted();
  client.read(4);
  const auto heard = client.audio[1];
  EXPECT_EQ(client.last_seq, 4U);
  client.read(2);  // these two are lost on the way
  client.lose_link();
  speaker->speak(3000);
  run_posted();
  clock.advance(seconds(30));
  sessions().sweep();
  auto again = resume(client, 4);
  again.read();
  EXPECT_EQ(again.last("resumed")["from"], 5);
  EXPECT_EQ(again.last("resumed")["epoch"], 2);
  EXPECT_EQ(again.frames.front().seq, 5U);
  auto all = heard;
  all.insert(all.end(), again.audio[1].begin(), again.audio[1].end());
  ASSERT_EQ(all.size(), 24000U);
  for (std::size_t i = 0; i < 12000; ++i) ASSERT_EQ(all[2 * i] | all[2 * i + 1] << 8, static_cast<int>(i));
  EXPECT_FALSE(speaker->let_go);
  speaker->log.finish();
  run_posted();
  again.read();
  EXPECT_EQ(again.last("done")["samples"], 12000);
  EXPECT_TRUE(exports("tts_session_resumes_total{outcome=\"resumed\"} 1"));
}

TEST_F(SessionsTest, ASocketThatIsStillOpenIsTakenOver) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  speaker->speak(3000);
  run_posted();
  client.read(1);
  wakes = 0;
  auto second = resume(client, 1);
  EXPECT_GT(wakes, 0) << "the old one is told";
  EXPECT_FALSE(client.read());
  EXPECT_EQ(client.closed, CloseCode::kTakenOver);
  client.lose_link();
  EXPECT_FALSE(speaker->let_go);
  second.read();
  EXPECT_EQ(second.frames.front().seq, 2U);
}

TEST_F(SessionsTest, AWrongTokenOrNameIsUnknownAndTheSocketGoesOnAsNew) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  client.lose_link();
  auto thief = resume(client, 0, std::string(32, '0'));
  thief.read();
  EXPECT_EQ(thief.types().back(), "resume_unknown");
  EXPECT_FALSE(speaker->let_go);
  EXPECT_NE(speak(thief, "b"), nullptr);
  auto owner = resume(client, 0);
  owner.read();
  EXPECT_FALSE(owner.last("resumed").is_null());
}

TEST_F(SessionsTest, ASessionNobodyComesBackToIsOver) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  client.lose_link();
  clock.advance(seconds(59));
  sessions().sweep();
  EXPECT_FALSE(speaker->let_go);
  EXPECT_EQ(sessions().waiting(), 1U);
  clock.advance(seconds(1));
  sessions().sweep();
  EXPECT_TRUE(speaker->let_go);
  EXPECT_EQ(sessions().waiting(), 0U);
  auto late = resume(client, 0);
  late.read();
  EXPECT_EQ(late.types().back(), "resume_expired");
  EXPECT_TRUE(exports("tts_session_bytes 0"));
}

TEST_F(SessionsTest, LeavingEndsTheSession) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  client.leave();
  EXPECT_TRUE(speaker->let_go);
  EXPECT_EQ(sessions().waiting(), 0U);
  auto again = resume(client, 0);
  again.read();
  EXPECT_EQ(again.types().back(), "resume_unknown");
}

TEST_F(SessionsTest, AFrameThatWasNeverSentCannotHaveArrived) {
  auto client = connect();
  speak(client, "a");
  client.lose_link();
  auto again = resume(client, 7);
  again.read();
  EXPECT_EQ(again.last("error")["field"], "seq");
}

class SmallCaps : public SessionsTest {
 protected:
  SmallCaps()
      : SessionsTest({.max_queued_bytes = 16'000, .max_queued = seconds(5), .max_kept_bytes = 8'000, .max_kept_bytes_in_all = 40'000,
                      .max_waiting_sessions = 2}) {}
};

TEST_F(SmallCaps, ASlowReaderFillsItsOwnQueueAndNoMore) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  for (int i = 0; i < 200 && speaker->below_high_water; ++i) {
    speaker->speak(1500);
    run_posted();
  }
  EXPECT_FALSE(speaker->below_high_water) << "the synthesis is told to pause";
  EXPECT_LT(speaker->log.held_bytes(), 80'000U);
  client.read();
  run_posted();
  client.read();
  EXPECT_EQ(client.audio[1].size(), speaker->spoken * 2) << "and nothing is lost";
  speaker->speak(1500);
  EXPECT_TRUE(speaker->below_high_water);
}

TEST_F(SmallCaps, WhoNeverAcknowledgesHearsOfTheGap) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  for (int i = 0; i < 10; ++i) {
    speaker->speak(1500);
    run_posted();
    client.read();
  }
  client.lose_link();
  auto again = resume(client, 2);
  again.read();
  const auto gap = again.last("resume_gap");
  ASSERT_FALSE(gap.is_null());
  EXPECT_GT(gap["from"], 3);
  EXPECT_EQ(gap["context"], "a");
  EXPECT_EQ(gap["first_sample"], 1500 * (static_cast<int>(gap["from"]) - 1));
  EXPECT_EQ(again.frames.front().seq, gap["from"]);
}

TEST_F(SmallCaps, TheOldestSessionsWithoutASocketGoFirst) {
  std::vector<Client> clients;
  std::vector<std::shared_ptr<Speaker>> heard;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect());
    heard.push_back(speak(clients.back(), "a"));
  }
  for (auto& client : clients) {
    clock.advance(seconds(1));
    client.lose_link();
  }
  sessions().sweep();
  EXPECT_TRUE(heard[0]->let_go);
  EXPECT_FALSE(heard[1]->let_go);
  EXPECT_EQ(sessions().waiting(), 2U);
  EXPECT_TRUE(exports("tts_session_resumes_total{outcome=\"evicted\"} 1"));
}

TEST_F(SmallCaps, SocketsOfOneAddressAreLimited) {
  options_.max_sockets_per_address = 2;
  auto a = connect("192.0.2.1"), b = connect("192.0.2.1");
  auto refused = sessions().open("192.0.2.1", [] {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kQueueFull);
  auto other = connect("192.0.2.2");
  a.leave();
  EXPECT_TRUE(sessions().open("192.0.2.1", [] {}).ok());
}

TEST_F(SessionsTest, RealtimePaceSendsOnlySoFarAhead) {
  auto client = connect();
  const auto speaker = speak(client, "a", {{"pace", "realtime"}});
  for (int i = 0; i < 10; ++i) speaker->speak(24000);
  run_posted();
  client.read();
  const auto seconds_heard = [&] { return static_cast<double>(client.audio[1].size()) / 48000; };
  EXPECT_GE(seconds_heard(), 4);
  EXPECT_LE(seconds_heard(), 5);
  EXPECT_LE(client.look_again_in, seconds(1));
  clock.advance(seconds(3));
  client.read();
  EXPECT_GE(seconds_heard(), 7);
  EXPECT_LE(seconds_heard(), 8);
}

TEST_F(SessionsTest, AnAdaptiveBitrateFollowsTheLink) {
  auto client = connect();
  const auto speaker = speak(client, "a", {{"format", "opus"}, {"bitrate", "auto"}});
  ASSERT_NE(speaker, nullptr);
  EXPECT_TRUE(speaker->request.adaptive_bitrate);
  EXPECT_THAT(speaker->bitrates, ElementsAre(32'000U));
  EXPECT_EQ(client.last("started")["bitrate"], 32'000);
}

TEST_F(SessionsTest, ADrainingServerFinishesWhatItWasGivenAndClosesWithinTheWindow) {
  auto busy = connect(), idle = connect();
  const auto speaker = speak(busy, "a");
  sessions().drain(clock.now() + seconds(20));
  EXPECT_EQ(speaker->asked, "|end");
  EXPECT_TRUE(busy.read());
  EXPECT_TRUE(idle.read());
  EXPECT_EQ(idle.last("draining")["deadline_ms"], 20'000);
  EXPECT_LE(idle.look_again_in, options_.drain_spread);
  EXPECT_EQ(speak(busy, "b"), nullptr);
  EXPECT_EQ(busy.last("error")["code"], "unavailable");
  EXPECT_FALSE(sessions().open("10.0.0.9", [] {}).ok());
  clock.advance(options_.drain_spread);
  EXPECT_FALSE(idle.read());
  EXPECT_EQ(idle.closed, CloseCode::kRestart);
  EXPECT_TRUE(busy.read()) << "still speaks";
  speaker->speak(100);
  speaker->log.finish();
  run_posted();
  EXPECT_FALSE(busy.read());
  EXPECT_EQ(busy.types().back(), "done");
  EXPECT_EQ(busy.closed, CloseCode::kRestart);
}

TEST_F(SessionsTest, NothingIsHeldOnceEverythingIsAcknowledged) {
  auto client = connect();
  const auto speaker = speak(client, "a");
  speaker->speak(6000);
  run_posted();
  client.read();
  EXPECT_FALSE(exports("tts_session_bytes 0"));
  client.send(api, {{"type", "ack"}, {"seq", client.last_seq}});
  client.read();
  EXPECT_TRUE(exports("tts_session_bytes 0"));
}

}  // namespace
}  // namespace tts::stream
