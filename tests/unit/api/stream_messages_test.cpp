#include "tts/api/stream_messages.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "catalog_fixture.h"
#include "json_schema.h"
#include "stream_wire.h"

namespace tts::api {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

Error error(ErrorCode code, std::string message = "what", std::string param = "", int retry_ms = 0) {
  return {.code = code, .message = std::move(message), .param = std::move(param), .retry_after = milliseconds(retry_ms)};
}

class StreamMessagesTest : public testing::Test {
 protected:
  template <class Message>
  Message parsed(std::string_view text) const {
    auto message = api_.parse(text);
    if (!message) {
      ADD_FAILURE() << text << ": " << message.error().message;
      return {};
    }
    if (!std::holds_alternative<Message>(*message)) {
      ADD_FAILURE() << text << " is of another type";
      return {};
    }
    return std::get<Message>(std::move(message).value());
  }

  // What the server says must be what the schema describes.
  json told(const std::string& text) const {
    auto message = json::parse(text);
    EXPECT_THAT(schema_.problems(message, "server"), IsEmpty()) << text;
    EXPECT_THAT(schema_.problems(message, message.at("type").get<std::string>()), IsEmpty()) << text;
    return message;
  }

  StreamApi api_{test_catalog()};
  SchemaChecker schema_{json::parse(api_.schema_json())};
};

struct Refused {
  std::string text;
  std::string param;
  std::string message;
  ErrorCode code = ErrorCode::kInvalidArgument;
};

// ---------------------------------------------------------------- start

TEST_F(StreamMessagesTest, StartNeedsOnlyAName) {
  const auto start = parsed<StreamStart>(R"({"type":"start","context":"a"})");
  EXPECT_EQ(start.context, "a");
  EXPECT_FALSE(start.adaptive_bitrate);
  EXPECT_TRUE(start.timestamps);
  EXPECT_FALSE(start.realtime);
  const auto& request = start.request;
  EXPECT_TRUE(request.incremental);
  EXPECT_EQ(request.text, "");
  EXPECT_EQ(request.voice, "mei");
  EXPECT_EQ(request.format.container, audio::Container::kOpusPackets);
  EXPECT_EQ(request.format.sample_rate, 24000U);
  EXPECT_EQ(request.format.bitrate, 48000U) << "what 'started' tells";
  EXPECT_EQ(request.speed, 1.0);
  EXPECT_FALSE(request.seed);
  EXPECT_EQ(request.text_options.language, "");
  EXPECT_FALSE(request.sampling.temperature || request.sampling.top_p || request.sampling.top_k || request.sampling.repetition_penalty ||
               request.sampling.min_steps || request.sampling.max_steps);
  EXPECT_EQ(request.latency, engine::Latency::kDefault);
  EXPECT_EQ(request.max_buffer_delay, milliseconds(3000));
  EXPECT_FALSE(request.whole);
  EXPECT_EQ(request.packet, milliseconds(0));
  EXPECT_EQ(request.deadline, TimePoint::max());
}

TEST_F(StreamMessagesTest, StartTakesEveryField) {
  const auto start = parsed<StreamStart>(R"({"type":"start","context":"说话人 1","voice":"tom","format":"ogg_opus","sample_rate":48000,
    "bitrate":16000,"speed":1.5,"seed":18446744073709551615,"language":"en","temperature":0.5,"top_p":0.9,"top_k":30,
    "repetition_penalty":1.05,"latency":"exact","timestamps":false,"pace":"realtime","max_buffer_delay_ms":0})");
  EXPECT_EQ(start.context, "说话人 1");
  EXPECT_FALSE(start.timestamps);
  EXPECT_TRUE(start.realtime);
  EXPECT_FALSE(start.adaptive_bitrate);
  const auto& request = start.request;
  EXPECT_EQ(request.voice, "tom");
  EXPECT_EQ(request.format.container, audio::Container::kOggOpus);
  EXPECT_EQ(request.format.sample_rate, 48000U);
  EXPECT_EQ(request.format.bitrate, 16000U);
  EXPECT_EQ(request.speed, 1.5);
  EXPECT_EQ(request.seed, 18446744073709551615U);
  EXPECT_EQ(request.text_options.language, "en");
  EXPECT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_EQ(request.sampling.top_p, 0.9F);
  EXPECT_EQ(request.sampling.top_k, 30U);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.05F);
  EXPECT_EQ(request.latency, engine::Latency::kExact);
  EXPECT_EQ(request.max_buffer_delay, milliseconds(0));
}

TEST_F(StreamMessagesTest, EveryFormatHasItsRateAndBitrate) {
  struct Row {
    const char* name;
    audio::Container container;
    std::uint32_t sample_rate, bitrate;
  };
  const std::array<Row, 5> table{{{"opus", audio::Container::kOpusPackets, 24000, 48000},
                                  {"ogg_opus", audio::Container::kOggOpus, 24000, 48000},
                                  {"pcm_s16le", audio::Container::kPcm, 24000, 0},
                                  {"mulaw", audio::Container::kMulaw, 8000, 0},
                                  {"alaw", audio::Container::kAlaw, 8000, 0}}};
  for (const auto& row : table) {
    const auto format = parsed<StreamStart>(json{{"type", "start"}, {"context", "a"}, {"format", row.name}}.dump()).request.format;
    EXPECT_EQ(format.container, row.container) << row.name;
    EXPECT_EQ(format.sample_rate, row.sample_rate) << row.name;
    EXPECT_EQ(format.bitrate, row.bitrate) << row.name;
  }
  for (const std::uint32_t rate : {8000U, 16000U, 24000U, 48000U}) {
    for (const auto* name : {"opus", "ogg_opus", "pcm_s16le"}) {
      const json body{{"type", "start"}, {"context", "a"}, {"format", name}, {"sample_rate", rate}};
      EXPECT_EQ(parsed<StreamStart>(body.dump()).request.format.sample_rate, rate) << name;
    }
  }
  EXPECT_EQ(parsed<StreamStart>(R"({"type":"start","context":"a","format":"alaw","sample_rate":8000})").request.format.sample_rate, 8000U);
  EXPECT_EQ(parsed<StreamStart>(R"({"type":"start","context":"a","sample_rate":16000.0})").request.format.sample_rate, 16000U);
}

TEST_F(StreamMessagesTest, AutoIsABitrate) {
  for (const auto* format : {"opus", "ogg_opus"}) {
    const auto start = parsed<StreamStart>(json{{"type", "start"}, {"context", "a"}, {"format", format}, {"bitrate", "auto"}}.dump());
    EXPECT_TRUE(start.adaptive_bitrate);
    EXPECT_EQ(start.request.format.bitrate, 32000U);
  }
}

TEST_F(StreamMessagesTest, LanguageAutoIsNoLanguage) {
  EXPECT_EQ(parsed<StreamStart>(R"({"type":"start","context":"a","language":"auto"})").request.text_options.language, "");
  EXPECT_EQ(parsed<StreamUpdate>(R"({"type":"update","context":"a","language":"auto"})").change.language, "");
}

TEST_F(StreamMessagesTest, StartRefusesAndNamesTheField) {
  const auto start = [](const std::string& more) { return R"({"type":"start","context":"a",)" + more + "}"; };
  const std::vector<Refused> table{
      {start(R"("voice":"bob")"), "voice", "there is no voice 'bob'; this server has mei, tom, ann"},
      {start(R"("voice":"alloy")"), "voice", "no voice 'alloy'"},
      {start(R"("voice":{"id":"mei"})"), "voice", "'voice' must be a string; got an object"},
      {start(R"("format":"wav")"), "format", "one of opus, ogg_opus, pcm_s16le, mulaw, alaw; got 'wav'"},
      {start(R"("format":"OPUS")"), "format", "got 'OPUS'"},
      {start(R"("sample_rate":12000)"), "sample_rate", "one of 8000, 16000, 24000, 48000; got 12000"},
      {start(R"("sample_rate":44100)"), "sample_rate", "got 44100"},
      {start(R"("sample_rate":"24000")"), "sample_rate", "got '24000'"},
      {start(R"("sample_rate":24000.5)"), "sample_rate", "got 24000.5"},
      {start(R"("sample_rate":-8000)"), "sample_rate", "got -8000"},
      {start(R"("sample_rate":0)"), "sample_rate", "got 0"},
      {start(R"("format":"mulaw","sample_rate":16000)"), "sample_rate", "mulaw audio cannot have a sample rate of 16000 Hz"},
      {start(R"("format":"alaw","sample_rate":24000)"), "sample_rate", "alaw audio cannot have a sample rate of 24000 Hz"},
      {start(R"("bitrate":15999)"), "bitrate", "a whole number from 16000 to 64000 or 'auto'; got 15999"},
      {start(R"("bitrate":64001)"), "bitrate", "got 64001"},
      {start(R"("bitrate":"fast")"), "bitrate", "got 'fast'"},
      {start(R"("bitrate":true)"), "bitrate", "got true"},
      {start(R"("format":"pcm_s16le","bitrate":32000)"), "bitrate", "pcm_s16le audio has no bitrate"},
      {start(R"("format":"mulaw","bitrate":"auto")"), "bitrate", "mulaw audio has no bitrate"},
      {start(R"("speed":0.49)"), "speed", "a number from 0.5 to 2; got 0.49"},
      {start(R"("speed":2.01)"), "speed", "from 0.5 to 2"},
      {start(R"("speed":"fast")"), "speed", "got 'fast'"},
      {start(R"("seed":-1)"), "seed", "unsigned 64-bit"},
      {start(R"("seed":18446744073709551616)"), "seed", "unsigned 64-bit"},
      {start(R"("seed":"7")"), "seed", "got '7'"},
      {start(R"("language":"fr")"), "language", "one of auto, zh, en"},
      {start(R"("temperature":0)"), "temperature", "from 0.01 to 2"},
      {start(R"("temperature":1e400)"), "", "out of range"},
      {start(R"("top_p":1.1)"), "top_p", "from 0 to 1"},
      {start(R"("top_k":-1)"), "top_k", "from 0 to 1000"},
      {start(R"("repetition_penalty":0)"), "repetition_penalty", "from 0.1"},
      {start(R"("latency":"lowest")"), "latency", "one of low, exact"},
      {start(R"("timestamps":"yes")"), "timestamps", "true or false"},
      {start(R"("timestamps":1)"), "timestamps", "true or false"},
      {start(R"("pace":"slow")"), "pace", "one of fast, realtime"},
      {start(R"("max_buffer_delay_ms":10001)"), "max_buffer_delay_ms", "from 0 to 10000"},
      {start(R"("max_buffer_delay_ms":-1)"), "max_buffer_delay_ms", "from 0 to 10000"},
      {start(R"("voise":"mei")"), "voise", "unknown field 'voise'; did you mean 'voice'?"},
      {start(R"("Voice":"mei")"), "Voice", "did you mean 'voice'?"},
      {start(R"("text":"hello")"), "text", "unknown field 'text'"},
      {start(R"("min_steps":3)"), "min_steps", "unknown field 'min_steps'"},
  };
  for (const auto& row : table) {
    const auto message = api_.parse(row.text);
    ASSERT_FALSE(message) << row.text;
    EXPECT_EQ(message.error().code, row.code) << row.text;
    EXPECT_EQ(message.error().param, row.param) << row.text;
    EXPECT_THAT(message.error().message, HasSubstr(row.message)) << row.text;
  }
}

// ---------------------------------------------------------------- the others

TEST_F(StreamMessagesTest, Text) {
  auto text = parsed<StreamText>(R"({"type":"text","context":"a","text":"1234567890"})");
  EXPECT_EQ(text.context, "a");
  EXPECT_EQ(text.text, "1234567890");
  EXPECT_FALSE(text.flush);
  EXPECT_EQ(parsed<StreamText>(R"({"type":"text","context":"a","text":"  "})").text, "  ") << "blanks stand between words";
  EXPECT_EQ(parsed<StreamText>(R"({"type":"text","context":"a","text":"\n"})").text, "\n");
  EXPECT_EQ(parsed<StreamText>(R"({"type":"text","context":"a","text":"你好，😀"})").text, "你好，😀");
  EXPECT_TRUE(parsed<StreamText>(R"({"type":"text","context":"a","text":"x","flush":true})").flush);
  text = parsed<StreamText>(R"({"type":"text","context":"a","text":"","flush":true})");
  EXPECT_EQ(text.text, "");
  EXPECT_TRUE(text.flush);
}

TEST_F(StreamMessagesTest, FlushEndCancel) {
  EXPECT_EQ(parsed<StreamFlush>(R"({"type":"flush","context":"a"})").context, "a");
  EXPECT_EQ(parsed<StreamEnd>(R"({"context":"b","type":"end"})").context, "b");
  const auto cancel = parsed<StreamCancel>(R"({"type":"cancel","context":"c"})");
  EXPECT_EQ(cancel.context, "c");
  EXPECT_FALSE(cancel.samples);
  EXPECT_EQ(parsed<StreamCancel>(R"({"type":"cancel","context":"c","samples":0})").samples, 0U);
  EXPECT_EQ(parsed<StreamCancel>(R"({"type":"cancel","context":"c","samples":18446744073709551615})").samples, 18446744073709551615U);
}

TEST_F(StreamMessagesTest, Update) {
  const auto update = parsed<StreamUpdate>(R"({"type":"update","context":"a","voice":"ann","speed":0.5,"language":"zh","temperature":0.7,
    "top_p":0.5,"top_k":3,"repetition_penalty":2,"latency":"low"})");
  EXPECT_EQ(update.context, "a");
  EXPECT_EQ(update.change.voice, "ann");
  EXPECT_EQ(update.change.speed, 0.5);
  EXPECT_EQ(update.change.language, "zh");
  EXPECT_EQ(update.change.sampling.temperature, 0.7F);
  EXPECT_EQ(update.change.sampling.top_p, 0.5F);
  EXPECT_EQ(update.change.sampling.top_k, 3U);
  EXPECT_EQ(update.change.sampling.repetition_penalty, 2.0F);
  EXPECT_EQ(update.change.latency, engine::Latency::kLow);
  const auto little = parsed<StreamUpdate>(R"({"type":"update","context":"a","speed":2})").change;
  EXPECT_EQ(little.speed, 2.0);
  EXPECT_FALSE(little.voice || little.language || little.latency || little.sampling.temperature || little.sampling.top_p ||
               little.sampling.top_k || little.sampling.repetition_penalty);
  // Each alone is a change, also to a value that is zero.
  for (const auto* more : {R"("voice":"tom")", R"("language":"auto")", R"("temperature":1)", R"("top_p":0)", R"("top_k":0)",
                           R"("repetition_penalty":1)", R"("latency":"exact")"}) {
    EXPECT_TRUE(api_.parse(std::string(R"({"type":"update","context":"a",)") + more + "}")) << more;
  }
}

TEST_F(StreamMessagesTest, Ack) {
  auto ack = parsed<StreamAck>(R"({"type":"ack","seq":4294967295})");
  EXPECT_EQ(ack.seq, 4294967295U);
  EXPECT_FALSE(ack.context);
  EXPECT_FALSE(ack.buffered_ms);
  ack = parsed<StreamAck>(R"({"type":"ack","seq":0,"context":"a","buffered_ms":86400000})");
  EXPECT_EQ(ack.seq, 0U);
  EXPECT_EQ(ack.context, "a");
  EXPECT_EQ(ack.buffered_ms, 86400000U);
}

TEST_F(StreamMessagesTest, Resume) {
  const auto resume = parsed<StreamResume>(R"({"type":"resume","session":"s-1","token":"t-2","seq":17})");
  EXPECT_EQ(resume.session, "s-1");
  EXPECT_EQ(resume.token, "t-2");
  EXPECT_EQ(resume.seq, 17U);
}

TEST_F(StreamMessagesTest, OthersRefuseAndNameTheField) {
  const std::vector<Refused> table{
      {R"({"type":"text","context":"a"})", "text", "'text' is required: a string"},
      {R"({"type":"text","context":"a","text":null})", "text", "'text' is required"},
      {R"({"type":"text","context":"a","text":""})", "text", "'text' is empty; send something to say, or set 'flush'"},
      {R"({"type":"text","context":"a","text":"","flush":false})", "text", "is empty"},
      {R"({"type":"text","context":"a","text":5})", "text", "must be a string; got 5"},
      {R"({"type":"text","context":"a","text":["a"]})", "text", "got an array"},
      {R"({"type":"text","context":"a","text":"12345678901"})", "text", "has 11 characters; this server takes at most 10 per message",
       ErrorCode::kTooLarge},
      {R"({"type":"text","context":"a","text":"x","flush":"now"})", "flush", "true or false"},
      {R"({"type":"text","context":"a","txt":"x"})", "txt", "unknown field 'txt'; did you mean 'text'?"},
      {R"({"type":"text","text":"x"})", "context", "'context' is required: a string"},
      {R"({"type":"flush"})", "context", "'context' is required"},
      {R"({"type":"flush","context":"a","text":"x"})", "text", "unknown field 'text'"},
      {R"({"type":"end","context":7})", "context", "must be a string; got 7"},
      {R"({"type":"end","contex":"a"})", "contex", "did you mean 'context'?"},
      {R"({"type":"end","context":"a","zzzzzz":1})", "zzzzzz", "unknown field 'zzzzzz'"},
      {R"({"type":"cancel"})", "context", "required"},
      {R"({"type":"cancel","context":"a","samples":-1})", "samples", "unsigned 64-bit whole number; got -1"},
      {R"({"type":"cancel","context":"a","samples":1.5})", "samples", "got 1.5"},
      {R"({"type":"cancel","context":"a","samples":18446744073709551616})", "samples", "unsigned 64-bit"},
      {R"({"type":"update","context":"a"})", "", "the update changes nothing"},
      {R"({"type":"update","context":"a","speed":null})", "", "the update changes nothing"},
      {R"({"type":"update","context":"a","voice":"bob"})", "voice", "there is no voice 'bob'"},
      {R"({"type":"update","context":"a","speed":3})", "speed", "from 0.5 to 2; got 3"},
      {R"({"type":"update","context":"a","language":""})", "language", "one of auto, zh, en; got ''"},
      {R"({"type":"update","context":"a","latency":"default"})", "latency", "one of low, exact"},
      {R"({"type":"update","context":"a","temperature":"hot"})", "temperature", "got 'hot'"},
      {R"({"type":"update","context":"a","format":"opus"})", "format", "unknown field 'format'"},
      {R"({"type":"update","context":"a","seed":1})", "seed", "unknown field 'seed'"},
      {R"({"type":"update","speed":1})", "context", "required"},
      {R"({"type":"ack"})", "seq", "'seq' is required: a whole number from 0 to 4294967295"},
      {R"({"type":"ack","seq":-1})", "seq", "got -1"},
      {R"({"type":"ack","seq":4294967296})", "seq", "got 4294967296"},
      {R"({"type":"ack","seq":"1"})", "seq", "got '1'"},
      {R"({"type":"ack","seq":1,"buffered_ms":86400001})", "buffered_ms", "from 0 to 86400000"},
      {R"({"type":"ack","seq":1,"buffered_ms":-5})", "buffered_ms", "got -5"},
      {R"({"type":"ack","seq":1,"context":""})", "context", "'context' may not be empty"},
      {R"({"type":"ack","seq":1,"context":"a\tb"})", "context", "control characters"},
      {R"({"type":"ack","seq":1,"bufferd_ms":5})", "bufferd_ms", "did you mean 'buffered_ms'?"},
      {R"({"type":"resume","token":"t","seq":1})", "session", "'session' is required"},
      {R"({"type":"resume","session":"s","seq":1})", "token", "'token' is required"},
      {R"({"type":"resume","session":"s","token":"t"})", "seq", "'seq' is required"},
      {R"({"type":"resume","session":"s","token":"t","seq":1.5})", "seq", "got 1.5"},
      {R"({"type":"resume","session":"","token":"t","seq":1})", "session", "may not be empty"},
      {R"({"type":"resume","session":"s","token":")" + std::string(129, 't') + R"(","seq":1})", "token", "at most 128 bytes long"},
      {R"({"type":"resume","session":"s","token":"t","seq":1,"context":"a"})", "context", "unknown field 'context'"},
  };
  for (const auto& row : table) {
    const auto message = api_.parse(row.text);
    ASSERT_FALSE(message) << row.text;
    EXPECT_EQ(message.error().code, row.code) << row.text;
    EXPECT_EQ(message.error().param, row.param) << row.text;
    EXPECT_THAT(message.error().message, HasSubstr(row.message)) << row.text;
  }
}

TEST_F(StreamMessagesTest, ContextNames) {
  const auto end = [](std::string_view name) { return json{{"type", "end"}, {"context", name}}.dump(); };
  for (const std::string name : {"a", " ", "caller 2", "说话人", "😀", "a/b\\c\"d"}) EXPECT_EQ(parsed<StreamEnd>(end(name)).context, name);
  EXPECT_EQ(parsed<StreamEnd>(end(std::string(64, 'x'))).context.size(), 64U);
  std::string chinese;
  for (int i = 0; i < 21; ++i) chinese += "好";  // 63 bytes
  EXPECT_EQ(parsed<StreamEnd>(end(chinese)).context, chinese);
  const std::vector<std::pair<std::string, std::string>> wrong{
      {end(""), "'context' may not be empty"},
      {end(std::string(65, 'x')), "'context' may be at most 64 bytes long"},
      {end(chinese + "好"), "at most 64 bytes"},
      {end("a\nb"), "control characters"},
      {end("\x1f"), "control characters"},
      {end("\x7f"), "control characters"},
      {end("\xC2\x80"), "control characters"},
      {end("\xC2\x9F"), "control characters"},
  };
  for (const auto& [text, message] : wrong) {
    const auto refused = api_.parse(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().param, "context") << text;
    EXPECT_THAT(refused.error().message, HasSubstr(message)) << text;
  }
  EXPECT_TRUE(api_.parse(end("\xC2\xA0"))) << "the first that is no control character";
}

TEST_F(StreamMessagesTest, TypesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> table{
      {R"({})", "'type' is required: one of start, text, flush, end, cancel, update, ack, resume"},
      {R"({"context":"a"})", "'type' is required"},
      {R"({"type":null})", "'type' is required"},
      {R"({"type":5})", "'type' must be one of start, text, flush, end, cancel, update, ack, resume; got 5"},
      {R"({"type":{}})", "got an object"},
      {R"({"type":"strat","context":"a"})", "unknown type 'strat'; did you mean 'start'?"},
      {R"({"type":"Text","context":"a"})", "did you mean 'text'?"},
      {R"({"type":""})", "unknown type ''; the types are start, text, flush, end, cancel, update, ack, resume"},
      {R"({"type":"synthesize"})", "unknown type 'synthesize'; the types are"},
      {R"({"type":"ready"})", "unknown type 'ready'"},
      {R"({"type":")" + std::string(5000, 'x') + R"("})", "x…'; the types are"},
  };
  for (const auto& [text, message] : table) {
    const auto refused = api_.parse(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_EQ(refused.error().param, "type") << text;
    EXPECT_THAT(refused.error().message, HasSubstr(message)) << text;
    EXPECT_LT(refused.error().message.size(), 250U);
  }
}

TEST_F(StreamMessagesTest, HostileTextIsRefused) {
  std::string keys = R"({"type":"end")";
  for (int i = 0; i < 64; ++i) keys += ",\"k" + std::to_string(i) + "\":0";
  const std::vector<std::pair<std::string, std::string>> table{
      {"", "the message is empty; send a JSON object"},
      {"hello", "the message is not valid JSON at line 1, column 1"},
      {"[]", "the message must be a JSON object"},
      {"\"text\"", "the message must be a JSON object"},
      {R"({"type":"end","context":"a")", "the message is not valid JSON"},
      {R"({"type":"end","context":"a"}{})", "the message is not valid JSON"},
      {R"({"type":"end","context":"a","context":"b"})", "the key 'context' appears twice"},
      {R"({"type":"end","type":"end","context":"a"})", "the key 'type' appears twice"},
      {R"({"type":"text","context":"a","text":"\u0000"})", "U+0000"},
      {R"({"type":"text","context":"a","text":"\ud800"})", "not valid JSON"},
      {"{\"type\":\"text\",\"context\":\"a\",\"text\":\"\xC3\x28\"}", "the message is not valid UTF-8 at byte 37"},
      {R"({"type":)" + std::string(100, '['), "nested deeper than 16 levels"},
      {keys + "}", "more than 64 keys"},
  };
  for (const auto& [text, message] : table) {
    const auto refused = api_.parse(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_EQ(refused.error().param, "") << text;
    EXPECT_THAT(refused.error().message, HasSubstr(message)) << text;
    EXPECT_EQ(wrong_message_code(refused.error()), "invalid_message") << text;
  }
}

TEST_F(StreamMessagesTest, SizeHasALimit) {
  auto catalog = test_catalog();
  catalog.max_text_chars = 1'000'000;
  const StreamApi api(catalog);
  const std::string head = R"({"type":"text","context":"a","text":")", tail = R"("})";
  const std::string most = head + std::string(kMaxStreamMessageBytes - head.size() - tail.size(), 'x') + tail;
  EXPECT_TRUE(api.parse(most));
  const auto refused = api.parse(most + " ");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(refused.error().message, HasSubstr("65537 bytes; a message may have 65536"));
  EXPECT_EQ(wrong_message_code(refused.error()), "invalid_message");
}

TEST_F(StreamMessagesTest, RefusedMessagesStillTellTheirContext) {
  EXPECT_EQ(api_.context_of(R"({"type":"start","context":"a","voice":"bob"})"), "a");
  EXPECT_EQ(api_.context_of(R"({"type":"strat","context":"a"})"), "a");
  EXPECT_EQ(api_.context_of(R"({"type":"start"})"), "");
  EXPECT_EQ(api_.context_of(R"({"type":"start","context":5})"), "");
  EXPECT_EQ(api_.context_of(R"({"type":"start","context":"a\n"})"), "");
  EXPECT_EQ(api_.context_of(json{{"type", "start"}, {"context", std::string(65, 'x')}}.dump()), "");
  EXPECT_EQ(api_.context_of(R"({"context":"a")"), "");
}

TEST_F(StreamMessagesTest, TheCatalogIsCopied) {
  auto catalog = std::make_unique<Catalog>(test_catalog());
  const StreamApi api(*catalog);
  catalog.reset();
  EXPECT_TRUE(api.parse(R"({"type":"start","context":"a","voice":"tom"})"));
  EXPECT_FALSE(api.parse(R"({"type":"start","context":"a","voice":"bob"})"));
}

// ---------------------------------------------------------------- from the server

TEST_F(StreamMessagesTest, WhatTheServerSays) {
  EXPECT_EQ(told(ready_message({.session = "s", .resume_token = "t", .epoch = 1, .server = "chattts-server/1", .max_contexts = 8,
                                .max_text_chars = 4000, .resume_ms = 60'000})),
            json::parse(R"({"type":"ready","session":"s","resume_token":"t","epoch":1,"server":"chattts-server/1","limits":{
              "max_text_characters":4000,"max_contexts":8,"max_message_bytes":65536,"resume_ms":60000}})"));
  StartedMessage started{.context = "a",
                         .id = 3,
                         .voice = "mei",
                         .format = {.container = audio::Container::kOpusPackets, .sample_rate = 24000, .bitrate = 0},
                         .seed = 7,
                         .bitrate = 32000,
                         .pre_skip = 60};
  EXPECT_EQ(told(started_message(started)),
            json::parse(R"({"type":"started","context":"a","id":3,"voice":"mei","format":"opus","sample_rate":24000,"seed":7,
              "bitrate":32000,"pre_skip":60})"));
  started.format.container = audio::Container::kPcm;
  EXPECT_EQ(told(started_message(started)),
            json::parse(R"({"type":"started","context":"a","id":3,"voice":"mei","format":"pcm_s16le","sample_rate":24000,"seed":7})"));
  EXPECT_EQ(told(sentence_message("a", 1, 5, 12, 48000)),
            json::parse(R"({"type":"sentence","context":"a","index":1,"begin":5,"end":12,"first_sample":48000})"));
  EXPECT_EQ(told(flushed_message("a", 12)), json::parse(R"({"type":"flushed","context":"a","characters":12})"));
  EXPECT_EQ(told(done_message("a", 12, 96000)), json::parse(R"({"type":"done","context":"a","characters":12,"samples":96000})"));
  EXPECT_EQ(told(cancelled_message("a", 9, 70000)), json::parse(R"({"type":"cancelled","context":"a","characters":9,"samples":70000})"));
  EXPECT_EQ(told(resume_unknown_message()), json::parse(R"({"type":"resume_unknown"})"));
  EXPECT_EQ(told(resume_expired_message()), json::parse(R"({"type":"resume_expired"})"));
  EXPECT_EQ(told(draining_message(20'000)), json::parse(R"({"type":"draining","deadline_ms":20000})"));
}

TEST_F(StreamMessagesTest, WhereAResumedClientIs) {
  const std::vector<KnownContext> contexts{{.context = "a", .id = 1, .characters = 7, .ended = true}, {.context = "b", .id = 2}};
  EXPECT_EQ(told(resumed_message({.session = "s", .epoch = 2, .from = 18, .contexts = contexts})),
            json::parse(R"({"type":"resumed","session":"s","epoch":2,"from":18,"contexts":[
              {"context":"a","id":1,"characters":7,"ended":true},{"context":"b","id":2,"characters":0,"ended":false}]})"));
  EXPECT_EQ(told(resumed_message({.session = "s", .epoch = 2, .from = 1})).at("contexts"), json::array());
  EXPECT_EQ(told(resume_gap_message({.session = "s", .epoch = 3, .from = 30, .contexts = {}, .context = "a", .first_sample = 4800})),
            json::parse(R"({"type":"resume_gap","session":"s","epoch":3,"from":30,"contexts":[],"context":"a","first_sample":4800})"));
  EXPECT_FALSE(told(resume_gap_message({.session = "s", .epoch = 3, .from = 30})).contains("first_sample"));
}

TEST_F(StreamMessagesTest, Errors) {
  EXPECT_EQ(told(stream_error_message({.code = "duplicate_context",
                                       .error = error(ErrorCode::kInvalidArgument, "is running", "context"),
                                       .context = "a",
                                       .ended = false})),
            json::parse(R"({"type":"error","code":"duplicate_context","message":"is running","context":"a","ended":false,
              "field":"context"})"));
  EXPECT_EQ(told(stream_error_message({.error = error(ErrorCode::kInvalidArgument, "bad JSON")})),
            json::parse(R"({"type":"error","code":"invalid_message","message":"bad JSON"})"));
  EXPECT_EQ(told(stream_error_message({.error = error(ErrorCode::kQueueFull, "busy", "", 2500), .context = "a"})),
            json::parse(R"({"type":"error","code":"queue_full","message":"busy","context":"a","ended":true,"retry_after_ms":2500})"));
  EXPECT_EQ(told(stream_error_message({.error = error(ErrorCode::kUnavailable, "draining")})).at("retry_after_ms"), 1000);
  EXPECT_FALSE(told(stream_error_message({.error = error(ErrorCode::kDeadlineExceeded)})).contains("retry_after_ms"));
}

TEST_F(StreamMessagesTest, OurOwnFailuresAreNotSpelledOut) {
  for (const auto code : {ErrorCode::kInternal, ErrorCode::kEngineFailure}) {
    auto text = stream_error_message({.error = error(code, "/etc/secret: 0x7fff"), .context = "a", .request_id = "req-7"});
    EXPECT_THAT(text, AllOf(Not(HasSubstr("secret")), HasSubstr("req-7"))) << text;
    text = stream_error_message({.error = error(code, "/etc/secret: 0x7fff")});
    EXPECT_THAT(text, AllOf(Not(HasSubstr("secret")), HasSubstr("the log has the cause."))) << text;
    told(text);
  }
}

TEST_F(StreamMessagesTest, WordsOfClientsComeBackWhole) {
  const std::string name = "\"\\/\b😀\xE2\x80\xA8</script>";
  EXPECT_EQ(told(flushed_message(name, 1)).at("context"), name);
  EXPECT_NO_THROW(json::parse(stream_error_message({.error = error(ErrorCode::kInvalidArgument, "\xFF\xFE")})));
}

TEST(StreamErrorCodes, OfErrorsThatEndAContext) {
  const std::vector<std::pair<Error, std::string_view>> table{
      {error(ErrorCode::kInvalidArgument), "invalid_message"},
      {error(ErrorCode::kInvalidArgument, "", "type"), "invalid_message"},
      {error(ErrorCode::kInvalidArgument, "", "speed"), "invalid_field"},
      {error(ErrorCode::kInvalidArgument, "nothing in the text can be spoken", "text"), "nothing_to_say"},
      {error(ErrorCode::kUnsupported, "", "format"), "invalid_field"},
      {error(ErrorCode::kUnsupported), "invalid_message"},
      {error(ErrorCode::kNotFound, "", "context"), "unknown_context"},
      {error(ErrorCode::kNotFound, "", "voice"), "invalid_field"},
      {error(ErrorCode::kTooLarge, "", "text"), "text_too_long"},
      {error(ErrorCode::kTooLarge, "", "context"), "too_many_contexts"},
      {error(ErrorCode::kTooLarge), "invalid_message"},
      {error(ErrorCode::kQueueFull), "queue_full"},
      {error(ErrorCode::kUnavailable), "unavailable"},
      {error(ErrorCode::kDeadlineExceeded), "deadline_exceeded"},
      {error(ErrorCode::kEngineFailure), "engine_failure"},
      {error(ErrorCode::kInternal), "internal"},
      {error(ErrorCode::kCancelled), "internal"},
  };
  std::set<std::string_view> seen{"duplicate_context"};  // which only a session can tell
  for (const auto& [given, code] : table) {
    EXPECT_EQ(stream_error_code(given), code) << to_string(given.code) << " " << given.param;
    seen.insert(code);
  }
  EXPECT_EQ(seen, std::set<std::string_view>(stream_code::kAll.begin(), stream_code::kAll.end()));
}

TEST(StreamErrorCodes, OfMessagesThatAreWrong) {
  EXPECT_EQ(wrong_message_code(error(ErrorCode::kInvalidArgument)), "invalid_message");
  EXPECT_EQ(wrong_message_code(error(ErrorCode::kInvalidArgument, "", "type")), "invalid_message");
  EXPECT_EQ(wrong_message_code(error(ErrorCode::kInvalidArgument, "", "text")), "invalid_field") << "not: nothing to say";
  EXPECT_EQ(wrong_message_code(error(ErrorCode::kTooLarge, "", "text")), "text_too_long");
}

TEST(FrameHeaders, AreLittleEndian) {
  std::array<std::uint8_t, kFrameHeaderBytes> bytes{};
  bytes.fill(0xEE);
  write_frame_header({.last = false, .context = 0x0102, .seq = 0x03040506, .first_sample = 0x0708090A0B0C0D0E}, bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(1, 0, 2, 1, 6, 5, 4, 3, 0x0E, 0x0D, 0x0C, 0x0B, 0x0A, 9, 8, 7));
  write_frame_header({.last = true, .context = 1, .seq = 1, .first_sample = 0}, bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

// ---------------------------------------------------------------- documents

TEST_F(StreamMessagesTest, ShippedSchemaIsUpToDate) {
  const fs::path path = fs::path(TTS_SOURCE_DIR) / "src/docs/websocket.schema.json";
  if (std::getenv("TTS_WRITE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << api_.schema_json();
  EXPECT_TRUE(file_text(path) == api_.schema_json()) << "write it anew: TTS_WRITE_DOCS=1 unit_api --gtest_filter='*ShippedSchema*'";
}

TEST_F(StreamMessagesTest, SchemaIsTheSameOnEveryServer) {
  auto catalog = test_catalog();
  catalog.default_voice = "tom";
  catalog.sample_rate = 16000;
  catalog.max_text_chars = 99;
  EXPECT_EQ(StreamApi(catalog).schema_json(), api_.schema_json());
}

TEST_F(StreamMessagesTest, SchemaDescribesWhatIsParsed) {
  const std::vector<std::string> good{
      R"({"type":"start","context":"a"})",
      R"({"type":"start","context":"说话人","voice":"tom","format":"ogg_opus","sample_rate":48000,"bitrate":"auto","speed":1.5,
          "seed":18446744073709551615,"language":"en","temperature":0.5,"top_p":0.9,"top_k":30,"repetition_penalty":1.05,
          "latency":"exact","timestamps":false,"pace":"realtime","max_buffer_delay_ms":0})",
      R"({"type":"start","context":"a","bitrate":16000})",
      R"({"type":"text","context":"a","text":"x","flush":true})",
      R"({"type":"flush","context":"a"})",
      R"({"type":"end","context":"a"})",
      R"({"type":"cancel","context":"a","samples":1})",
      R"({"type":"update","context":"a","speed":1})",
      R"({"type":"ack","seq":1,"context":"a","buffered_ms":2})",
      R"({"type":"resume","session":"s","token":"t","seq":1})",
  };
  for (const auto& text : good) {
    EXPECT_TRUE(api_.parse(text)) << text;
    EXPECT_THAT(schema_.problems(json::parse(text)), IsEmpty()) << text;
    EXPECT_THAT(schema_.problems(json::parse(text), "client"), IsEmpty()) << text;
  }
  const std::vector<std::string> bad{
      R"({"type":"strat","context":"a"})",
      R"({"type":"start"})",
      R"({"type":"start","context":""})",
      R"({"type":"start","context":"a","voise":"tom"})",
      R"({"type":"start","context":"a","format":"wav"})",
      R"({"type":"start","context":"a","sample_rate":12000})",
      R"({"type":"start","context":"a","bitrate":15999})",
      R"({"type":"start","context":"a","bitrate":"fast"})",
      R"({"type":"start","context":"a","speed":3})",
      R"({"type":"start","context":"a","seed":-1})",
      R"({"type":"start","context":"a","timestamps":1})",
      R"({"type":"text","context":"a"})",
      R"({"type":"text","context":"a","text":7})",
      R"({"type":"update","context":"a"})",
      R"({"type":"ack","seq":4294967296})",
      R"({"type":"resume","session":"s","token":"t"})",
  };
  for (const auto& text : bad) {
    EXPECT_FALSE(api_.parse(text)) << text;
    EXPECT_THAT(schema_.problems(json::parse(text)), Not(IsEmpty())) << text;
  }
}

// The lines of websocket.md's conversations: "→ {…}" from the client, "← {…}" from the server, "← frame …" is audio.
TEST_F(StreamMessagesTest, ExamplesOfTheDocumentAreTrue) {
  auto catalog = test_catalog();
  for (const auto* voice : {"xiaobei", "heart"}) catalog.voices.push_back({voice, voice, "female", {"zh", "en"}});
  catalog.max_text_chars = 4000;
  const StreamApi api(catalog);
  const std::string document = file_text(fs::path(TTS_SOURCE_DIR) / "src/docs/websocket.md");
  std::set<std::string> seen;
  for (std::size_t begin = 0; begin < document.size();) {
    const auto end = std::min(document.find('\n', begin), document.size());
    const std::string line = document.substr(begin, end - begin);
    begin = end + 1;
    const bool client = line.starts_with("→ {");
    if (!client && !line.starts_with("← {")) continue;
    const std::string text = line.substr(line.find('{'));
    ASSERT_TRUE(json::accept(text)) << line;
    const auto message = json::parse(text);
    seen.insert(message.at("type").get<std::string>());
    const auto problems = schema_.problems(message, client ? "client" : "server");
    const auto read = client ? api.parse(text) : Result<StreamMessage>(StreamFlush{});
    if (read) {
      EXPECT_THAT(problems, IsEmpty()) << line;
    } else {  // it shows what a mistake is answered with
      EXPECT_THAT(problems, Not(IsEmpty())) << line;
      EXPECT_THAT(document, HasSubstr(json(read.error().message).dump())) << line;
    }
  }
  EXPECT_GE(seen.size(), 14U) << "the conversation has been cut short, or is written another way";
}

}  // namespace
}  // namespace tts::api
