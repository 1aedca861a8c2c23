#include "strict_json.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tts::api {
namespace {

using testing::HasSubstr;

std::string nested(std::size_t levels) {
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) text += "{\"a\":";
  return text + "1" + std::string(levels, '}');
}

std::string keys(std::size_t count) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text += "\"k";
    text += std::to_string(i);
    text += "\":0";
  }
  return text + "}";
}

struct Hostile {
  std::string body;
  std::string expected;  // part of the message
};

TEST(StrictJson, RefusesHostileBodies) {
  const std::vector<Hostile> table{
      {"", "empty"},
      {" ", "not valid JSON at line 1, column"},
      {"[1]", "must be a JSON object"},
      {"\"text\"", "must be a JSON object"},
      {"null", "must be a JSON object"},
      {"{", "not valid JSON at line 1, column 2"},
      {"{\"a\":1,}", "line 1, column 8"},
      {"{\n  \"a\": 1\n  \"b\": 2}", "line 3, column"},
      {"{\"a\":1} x", "not valid JSON"},
      {"{\"a\":1}{}", "not valid JSON"},
      {"{'a':1}", "not valid JSON at line 1, column 2"},
      {"{\"a\":NaN}", "not valid JSON"},
      {"{\"a\":Infinity}", "not valid JSON"},
      {"{\"a\":-Infinity}", "not valid JSON"},
      {"{\"a\":1e999}", "out of range at line 1, column 6"},
      {"{\"a\":-1e999}", "out of range"},
      {"{\"a\":01}", "not valid JSON"},
      {"{\"a\":+1}", "not valid JSON"},
      {"{\"a\":0x10}", "not valid JSON"},
      {"{\"a\":.5}", "not valid JSON"},
      {"{\"a\":1 /* comment */}", "not valid JSON"},
      {"{\"a\":\"\\u0000\"}", "U+0000"},
      {"{\"a\\u0000b\":1}", "U+0000"},
      {std::string("{\"a\":\"x\0y\"}", 11), "not valid JSON"},
      {"{\"a\":\"line\nbreak\"}", "not valid JSON"},
      {"{\"a\":\"\\ud800\"}", "not valid JSON"},
      {"{\"a\":\"\\udc00\"}", "not valid JSON"},
      {"{\"a\":\"\\ud800\\u0041\"}", "not valid JSON"},
      {"{\"a\":\"\\x41\"}", "not valid JSON"},
      {"{\"a\":\"\xC0\xAF\"}", "UTF-8 at byte 6"},
      {"{\"a\":\"\xED\xA0\x80\"}", "UTF-8 at byte 6"},
      {"{\"a\":\"\xF4\x90\x80\x80\"}", "UTF-8"},
      {"{\"a\":\"\xE4\xBD\"}", "UTF-8"},
      {"\xFF\xFE{}", "UTF-8 at byte 0"},
      {"{\"a\":1,\"a\":2}", "'a' appears twice"},
      {"{\"a\":1,\"\\u0061\":2}", "'a' appears twice"},
      {"{\"a\":{\"b\":1,\"b\":1}}", "'b' appears twice"},
      {nested(17), "nested deeper than 16"},
      {"{\"a\":" + std::string(250'000, '['), "nested deeper than 16"},
      {keys(65), "more than 64 keys"},
      {"{\"a\":[" + std::string(100'000, '0'), "not valid JSON"},
      {"{\"a\":[0" +
           [] {
             std::string more;
             for (int i = 0; i < 1024; ++i) more += ",0";
             return more;
           }() +
           "]}",
       "more than 1024 array elements"},
      {"{\"" + std::string(5000, 'k') + "\":1,\"" + std::string(5000, 'k') + "\":1}", "…' appears twice"},
  };
  for (const auto& [body, expected] : table) {
    const auto parsed = parse_strict_json_object(body);
    ASSERT_FALSE(parsed) << body.substr(0, 80);
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, HasSubstr(expected)) << body.substr(0, 80);
    EXPECT_LT(parsed.error().message.size(), 200U) << "messages stay short whatever the body";
  }
}

TEST(StrictJson, AcceptsWhatTheLimitsAllow) {
  EXPECT_TRUE(parse_strict_json_object(nested(16)));
  EXPECT_TRUE(parse_strict_json_object(keys(64)));
  EXPECT_TRUE(parse_strict_json_object("{\"a\":{\"x\":1},\"b\":{\"x\":1}}")) << "equal keys of different objects are fine";
  EXPECT_TRUE(parse_strict_json_object("{\"a\":\"\xF4\x8F\xBF\xBF\"}"));
}

TEST(StrictJson, DecodesEscapes) {
  const auto parsed = parse_strict_json_object("{\"a\":\"\\u4f60\\ud83d\\ude00\\n\"}");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->at("a"), "你😀\n");
}

TEST(StrictJson, QuotesNeverCutACharacter) {
  const auto text = in_quotes(std::string(63, 'a') + "你好");
  EXPECT_EQ(text, "'" + std::string(63, 'a') + "…'");
}

}  // namespace
}  // namespace tts::api
