#include "tts/api/speech_api.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "catalog_fixture.h"

namespace tts::api {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SpeechApiTest : public testing::Test {
 protected:
  SpeechApi api_{test_catalog()};
};

struct Refused {
  const char* body;
  const char* param;
  const char* message;
  ErrorCode code = ErrorCode::kInvalidArgument;
};

TEST_F(SpeechApiTest, NativeDefaults) {
  const auto call = api_.parse_native(R"({"text":"你好"})");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->request.text, "你好");
  EXPECT_EQ(call->characters, 2U);
  EXPECT_EQ(call->request.voice, "mei");
  EXPECT_EQ(call->request.format.container, audio::Container::kWav);
  EXPECT_EQ(call->request.format.sample_rate, 24000U);
  EXPECT_EQ(call->request.format.bitrate, 0U);
  EXPECT_EQ(call->request.speed, 1.0);
  EXPECT_FALSE(call->request.seed);
  EXPECT_FALSE(call->request.sampling.temperature);
  EXPECT_TRUE(call->request.text_options.normalize);
  EXPECT_TRUE(call->request.text_options.split);
  EXPECT_EQ(call->request.packet, milliseconds(0)) << "as it is made";
  EXPECT_EQ(call->request.latency, engine::Latency::kDefault);
  EXPECT_EQ(call->timeout, milliseconds(60'000));
  EXPECT_FALSE(call->sse);
}

TEST_F(SpeechApiTest, NativeTakesEveryField) {
  auto catalog = test_catalog();
  catalog.styles = catalog.refine = true;
  const SpeechApi api(catalog);
  const auto call = api.parse_native(R"({"text":"hi","voice":"tom","format":"opus","sample_rate":48000,"bitrate":32000,"speed":1.5,
    "seed":18446744073709551615,"temperature":0.5,"top_p":0.9,"top_k":30,"repetition_penalty":1.05,"min_steps":2,"max_steps":300,"language":"en",
    "normalize":false,"split":false,"style":"[speed_5]","refine":{"prompt":"[oral_2]"},"use_decoder":false,"packet_ms":20,"latency":"exact","timeout_ms":5000})");
  ASSERT_TRUE(call) << call.error().message;
  const auto& request = call->request;
  EXPECT_EQ(request.voice, "tom");
  EXPECT_EQ(request.format.container, audio::Container::kOggOpus);
  EXPECT_EQ(request.format.sample_rate, 48000U);
  EXPECT_EQ(request.format.bitrate, 32000U);
  EXPECT_EQ(request.speed, 1.5);
  EXPECT_EQ(request.seed, 18446744073709551615U);
  EXPECT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_EQ(request.sampling.top_p, 0.9F);
  EXPECT_EQ(request.sampling.top_k, 30U);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.05F);
  EXPECT_EQ(request.sampling.min_steps, 2U);
  EXPECT_EQ(request.sampling.max_steps, 300U);
  EXPECT_EQ(request.text_options.language, "en");
  EXPECT_EQ(request.latency, engine::Latency::kExact);
  EXPECT_FALSE(request.text_options.normalize);
  EXPECT_FALSE(request.text_options.split);
  EXPECT_EQ(request.text_options.style_prompt, "[speed_5]");
  ASSERT_TRUE(request.refine);
  EXPECT_EQ(request.refine->prompt, "[oral_2]");
  EXPECT_EQ(request.mel_path, engine::MelPath::kCodes);
  EXPECT_EQ(request.packet, milliseconds(20));
  EXPECT_EQ(call->timeout, milliseconds(5000));
}

TEST_F(SpeechApiTest, NativeRefusalsNameTheField) {
  const std::vector<Refused> table{
      {R"({})", "text", "'text' is required"},
      {R"({"text":null})", "text", "'text' is required"},
      {R"({"text":""})", "text", "empty"},
      {R"({"text":" \n\t　"})", "text", "empty"},
      {R"({"text":5})", "text", "must be a string; got 5"},
      {R"({"text":["a"]})", "text", "got an array"},
      {R"({"text":"12345678901"})", "text", "has 11 characters; this server takes at most 10", ErrorCode::kTooLarge},
      {R"({"text":"a","txet":1})", "txet", "unknown field 'txet'; did you mean 'text'?"},
      {R"({"text":"a","Voice":"mei"})", "Voice", "did you mean 'voice'?"},
      {R"({"text":"a","zzzzzz":1})", "zzzzzz", "unknown field 'zzzzzz'"},
      {R"({"text":"a","voice":"bob"})", "voice", "there is no voice 'bob'; this server has mei, tom, ann"},
      {R"({"text":"a","voice":"alloy"})", "voice", "no voice 'alloy'"},  // aliases belong to the other route
      {R"({"text":"a","voice":{"id":"mei"}})", "voice", "must be a string"},
      {R"({"text":"a","format":"aac"})", "format", "one of wav, pcm, mp3, flac, opus; got 'aac'"},
      {R"({"text":"a","format":"WAV"})", "format", "got 'WAV'"},
      {R"({"text":"a","sample_rate":7999})", "sample_rate", "from 8000 to 48000; got 7999"},
      {R"({"text":"a","sample_rate":24000.5})", "sample_rate", "whole number"},
      {R"({"text":"a","sample_rate":"24000"})", "sample_rate", "got '24000'"},
      {R"({"text":"a","sample_rate":44100,"format":"opus"})", "sample_rate", "opus audio cannot have a sample rate of 44100"},
      {R"({"text":"a","sample_rate":99999999999999999999})", "sample_rate", "whole number"},
      {R"({"text":"a","bitrate":32000})", "bitrate", "wav audio has no bitrate"},
      {R"({"text":"a","speed":0.49})", "speed", "a number from 0.5 to 2; got 0.49"},
      {R"({"text":"a","speed":2.01})", "speed", "from 0.5 to 2"},
      {R"({"text":"a","speed":"fast"})", "speed", "got 'fast'"},
      {R"({"text":"a","seed":-1})", "seed", "unsigned 64-bit"},
      {R"({"text":"a","seed":18446744073709551616})", "seed", "unsigned 64-bit"},
      {R"({"text":"a","temperature":0})", "temperature", "from 0.01 to 2"},
      {R"({"text":"a","top_p":1.1})", "top_p", "from 0 to 1"},
      {R"({"text":"a","top_k":-1})", "top_k", "from 0 to 1000"},
      {R"({"text":"a","repetition_penalty":0})", "repetition_penalty", "from 0.1"},
      {R"({"text":"a","max_steps":701})", "max_steps", "from 1 to 700"},
      {R"({"text":"a","min_steps":20,"max_steps":10})", "min_steps", "may not exceed"},
      {R"({"text":"a","language":"fr"})", "language", "one of auto, zh, en"},
      {R"({"text":"a","normalize":"yes"})", "normalize", "true or false"},
      {R"({"text":"a","normalize":1})", "normalize", "true or false"},
      {R"({"text":"a","style":"[speed_5]"})", "style", "has no styles", ErrorCode::kUnsupported},
      {R"({"text":"a","refine":true})", "refine", "has no refine pass", ErrorCode::kUnsupported},
      {R"({"text":"a","refine":{"prompt":3}})", "refine", "object with the string 'prompt'"},
      {R"({"text":"a","refine":{"prompt":"x","more":"y"}})", "refine", "object with the string 'prompt'"},
      {R"({"text":"a","packet_ms":19})", "packet_ms", "from 20 to 1000"},
      {R"({"text":"a","latency":"lowest"})", "latency", "one of low, exact"},
      {R"({"text":"a","timeout_ms":0})", "timeout_ms", "from 1 to 60000"},
      {R"({"text":"a","timeout_ms":60001})", "timeout_ms", "from 1 to 60000"},
  };
  for (const auto& row : table) {
    const auto call = api_.parse_native(row.body);
    ASSERT_FALSE(call) << row.body;
    EXPECT_EQ(call.error().code, row.code) << row.body;
    EXPECT_EQ(call.error().param, row.param) << row.body;
    EXPECT_THAT(call.error().message, HasSubstr(row.message)) << row.body;
  }
}

TEST_F(SpeechApiTest, MarkupHasALimitInEitherForm) {
  auto catalog = test_catalog();
  catalog.styles = catalog.refine = true;
  const SpeechApi api(catalog);
  const std::string most(256, '[');
  for (const std::string& markup : {most, most + "["}) {
    const bool fits = markup.size() == most.size();
    EXPECT_EQ(api.parse_native(json{{"text", "a"}, {"style", markup}}.dump()).ok(), fits);
    const auto call = api.parse_native(json{{"text", "a"}, {"refine", {{"prompt", markup}}}}.dump());
    EXPECT_EQ(call.ok(), fits);
    if (fits) continue;
    EXPECT_THAT(call.error().message, HasSubstr("'refine' may be at most 256 bytes long"));
  }
}

TEST_F(SpeechApiTest, NativeIsLenientWhereNothingIsLost) {
  EXPECT_TRUE(api_.parse_native(R"({"text":"1234567890"})"));
  EXPECT_TRUE(api_.parse_native(R"({"text":"a","seed":null,"voice":null})"));
  EXPECT_TRUE(api_.parse_native(R"({"text":"a","refine":false,"style":""})"));
  const auto call = api_.parse_native(R"({"text":"a","sample_rate":16000.0,"seed":7.0})");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->request.format.sample_rate, 16000U);
  EXPECT_EQ(call->request.seed, 7U);
}

TEST_F(SpeechApiTest, OpenAiDefaultsAndAliases) {
  const auto call = api_.parse_openai(R"({"model":"tts-1","input":"hi","voice":"onyx"})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->request.text, "hi");
  EXPECT_EQ(call->request.voice, "tom") << "a male name goes to a male voice";
  EXPECT_EQ(call->request.format.container, audio::Container::kMp3);
  EXPECT_FALSE(call->sse);
  EXPECT_THAT(call->warnings, IsEmpty());
  for (const auto* voice :
       {"alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse", "marin", "cedar", "mei"}) {
    EXPECT_TRUE(api_.parse_openai(json{{"model", "gpt-4o-mini-tts"}, {"input", "hi"}, {"voice", voice}}.dump())) << voice;
  }
  EXPECT_EQ(api_.parse_openai(R"({"model":"nano","input":"hi","voice":{"id":"ann"}})")->request.voice, "ann");
}

TEST_F(SpeechApiTest, OpenAiVoicesOfOneGenderAreSpread) {
  const auto alloy = api_.parse_openai(R"({"model":"tts-1","input":"hi","voice":"alloy"})")->request.voice;
  const auto coral = api_.parse_openai(R"({"model":"tts-1","input":"hi","voice":"coral"})")->request.voice;
  EXPECT_EQ(alloy, "mei");
  EXPECT_EQ(coral, "ann");
}

TEST_F(SpeechApiTest, OpenAiConfiguredAliasesWin) {
  auto catalog = test_catalog();
  catalog.openai.voices = {{"alloy", "tom"}, {"narrator", "ann"}};
  const SpeechApi api(catalog);
  EXPECT_EQ(api.parse_openai(R"({"model":"tts-1","input":"hi","voice":"alloy"})")->request.voice, "tom");
  EXPECT_EQ(api.parse_openai(R"({"model":"tts-1","input":"hi","voice":"narrator"})")->request.voice, "ann");
  catalog.openai.voices = {{"alloy", "nobody"}};
  EXPECT_THROW(SpeechApi{catalog}, std::invalid_argument);
}

TEST_F(SpeechApiTest, OpenAiWarnsAboutWhatItIgnores) {
  const auto call = api_.parse_openai(R"({"model":"tts-1","input":"hi","voice":"alloy","instructions":"sing","extra":1,"bad\r\nname":2})");
  ASSERT_TRUE(call);
  EXPECT_THAT(call->warnings, ElementsAre("ignored a field with an unprintable name", "ignored unknown field extra",
                                          "ignored instructions: the model cannot follow them"));
}

TEST_F(SpeechApiTest, OpenAiRefusals) {
  const std::vector<Refused> table{
      {R"({"input":"hi","voice":"alloy"})", "model", "'model' is required"},
      {R"({"model":"tts-1","voice":"alloy"})", "input", "'input' is required"},
      {R"({"model":"tts-1","input":"hi"})", "voice", "'voice' is required"},
      {R"({"model":"gpt-9","input":"hi","voice":"alloy"})", "model", "no model 'gpt-9'", ErrorCode::kNotFound},
      {R"({"model":"tts-1","input":"12345678901","voice":"alloy"})", "input", "at most 10", ErrorCode::kTooLarge},
      {R"({"model":"tts-1","input":"hi","voice":"bob"})", "voice", "no voice 'bob'"},
      {R"({"model":"tts-1","input":"hi","voice":{"name":"mei"}})", "voice", "object with the string 'id'"},
      {R"({"model":"tts-1","input":"hi","voice":"mei","response_format":"aac"})", "response_format", "aac is not offered",
       ErrorCode::kUnsupported},
      {R"({"model":"tts-1","input":"hi","voice":"mei","response_format":"ogg"})", "response_format", "one of mp3"},
      {R"({"model":"tts-1","input":"hi","voice":"mei","speed":4.0})", "speed", "from 0.5 to 2; got 4"},
      {R"({"model":"tts-1","input":"hi","voice":"mei","speed":0.25})", "speed", "from 0.5 to 2"},
      {R"({"model":"tts-1","input":"hi","voice":"mei","stream_format":"ws"})", "stream_format", "one of audio, sse"},
  };
  for (const auto& row : table) {
    const auto call = api_.parse_openai(row.body);
    ASSERT_FALSE(call) << row.body;
    EXPECT_EQ(call.error().code, row.code) << row.body;
    EXPECT_EQ(call.error().param, row.param) << row.body;
    EXPECT_THAT(call.error().message, HasSubstr(row.message)) << row.body;
  }
}

TEST_F(SpeechApiTest, OpenAiStreamFormatSse) {
  EXPECT_TRUE(api_.parse_openai(R"({"model":"tts-1","input":"hi","voice":"mei","stream_format":"sse"})")->sse);
}

TEST_F(SpeechApiTest, DocumentsListVoicesAndModels) {
  const auto voices = json::parse(api_.voices_json());
  ASSERT_EQ(voices.at("data").size(), 3U);
  EXPECT_EQ(voices["data"][0]["id"], "mei");
  EXPECT_EQ(voices["data"][0]["default"], true);
  EXPECT_EQ(voices["data"][1]["default"], false);
  const auto models = json::parse(api_.models_json());
  ASSERT_EQ(models.at("data").size(), 4U);
  EXPECT_EQ(models["data"][0]["id"], "nano");
  EXPECT_EQ(models["data"][1]["alias_of"], "nano");
}

TEST_F(SpeechApiTest, OpenApiIsGeneratedFromTheTables) {
  const auto document = json::parse(api_.openapi_json());
  EXPECT_EQ(document.at("openapi"), "3.1.0");
  EXPECT_EQ(document.at("info").at("version"), "9.9.9");
  for (const auto* path : {"/synthesize", "/synthesize_stream", "/v1/audio/speech", "/v1/voices", "/v1/models"})
    EXPECT_TRUE(document.at("paths").contains(path));
  const auto& native = document.at("components").at("schemas").at("SpeechRequest");
  EXPECT_EQ(native.at("required"), json::array({"text"}));
  EXPECT_EQ(native.at("additionalProperties"), false);
  EXPECT_EQ(native.at("properties").at("max_steps").at("maximum"), 700);
  EXPECT_EQ(native.at("properties").at("speed").at("minimum"), 0.5);
  EXPECT_EQ(native.at("properties").size(), 22U);
  for (const auto& [name, schema] : native.at("properties").items())
    EXPECT_FALSE(schema.at("description").get<std::string>().empty()) << name;
}

}  // namespace
}  // namespace tts::api
