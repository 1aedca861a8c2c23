#include "bench/load.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scripted_server.h"

namespace tts::bench {
namespace {

using testing::HasSubstr;

std::string samples(std::size_t count, std::int16_t value) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(value & 0xff));
    bytes.push_back(static_cast<char>(value >> 8));
  }
  return bytes;
}

// `requests` of one listener, who gets the script's answers in turn.
LoadResult ask(const ScriptedServer& server, std::size_t requests, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
  LoadOptions options;
  options.requests = requests;
  options.window = 60;
  options.patience = patience;
  int count = 0;
  LoadHooks hooks;
  hooks.next_body = [&] { return "{\"n\":" + std::to_string(count++) + "}"; };
  return run_load(server.address(), options, hooks);
}

TEST(RunLoad, MeasuresWhatArrives) {
  const ScriptedServer server({ScriptedServer::chunked({samples(100, 0), samples(50, 0) + samples(50, 5000), samples(300, 0)})});
  const auto result = ask(server, 3);
  ASSERT_EQ(result.outcomes.size(), 3U);
  EXPECT_EQ(result.asked, 3U);
  EXPECT_EQ(result.unfinished, 0U);
  EXPECT_GE(result.total.done, 3U);
  for (const auto& outcome : result.outcomes) {
    EXPECT_EQ(outcome.fate, Fate::kDone) << outcome.error;
    EXPECT_NEAR(outcome.audio, 0.5, 1e-9);
    EXPECT_GT(outcome.first_byte, 0);
    EXPECT_GE(outcome.total, outcome.first_byte);
    EXPECT_GE(outcome.first_audio, outcome.first_byte + 0.15 - 1e-9);
    EXPECT_GE(outcome.played_until, outcome.asked + outcome.first_byte + 0.5 - 1e-9);
  }
  EXPECT_THAT(server.requests().front(), HasSubstr("POST /synthesize_stream HTTP/1.1"));
  EXPECT_THAT(server.requests().front(), HasSubstr("{\"n\":0}"));
}

TEST(RunLoad, AQuietReplyIsHeardAtItsEnd) {
  const ScriptedServer server({ScriptedServer::chunked({samples(500, 3)})});
  const auto outcome = ask(server, 1).outcomes.at(0);
  EXPECT_NEAR(outcome.first_audio, outcome.first_byte + 0.5, 1e-9);
}

TEST(RunLoad, ARefusalIsNoFailureAndTellsWhenToComeBack) {
  const ScriptedServer server({"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0.2\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy",
                               ScriptedServer::chunked({samples(10, 9000)})});
  const auto result = ask(server, 2);
  ASSERT_EQ(result.outcomes.size(), 2U);
  EXPECT_EQ(result.outcomes[0].fate, Fate::kRefused);
  EXPECT_EQ(result.outcomes[0].retry_after, 0.2);
  EXPECT_THAT(result.outcomes[0].error, HasSubstr("429 busy"));
  EXPECT_EQ(result.outcomes[1].fate, Fate::kDone);
  EXPECT_GE(result.outcomes[1].asked - result.outcomes[0].asked, 0.2);
}

TEST(RunLoad, FailuresTellWhy) {
  const std::string whole = ScriptedServer::chunked({samples(100, 100)});
  const ScriptedServer server({"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad", whole.substr(0, whole.size() - 20),
                               ScriptedServer::chunked({}), ScriptedServer::chunked({samples(1, 1)}, ""), "not HTTP\r\n\r\n"});
  const auto result = ask(server, 5);
  ASSERT_EQ(result.outcomes.size(), 5U);
  for (const auto& outcome : result.outcomes) EXPECT_EQ(outcome.fate, Fate::kFailed);
  EXPECT_THAT(result.outcomes[0].error, HasSubstr("400 bad"));
  EXPECT_THAT(result.outcomes[1].error, HasSubstr("connection broke"));
  EXPECT_THAT(result.outcomes[2].error, HasSubstr("without audio"));
  EXPECT_THAT(result.outcomes[3].error, HasSubstr("sample rate"));
  EXPECT_THAT(result.outcomes[4].error, HasSubstr("connection broke"));
  EXPECT_EQ(result.total.failed, 5U);
}

TEST(RunLoad, AListenerDoesNotWaitForEver) {
  const ScriptedServer server({""});
  const auto result = ask(server, 1, std::chrono::milliseconds(20));
  ASSERT_EQ(result.outcomes.size(), 1U);
  EXPECT_EQ(result.outcomes[0].fate, Fate::kFailed);
}

TEST(RunLoad, RequestsThatDoNotEndAreCounted) {
  const ScriptedServer server({""});
  LoadOptions options;
  options.requests = 1;
  options.window = 0.01;
  options.most_wait = std::chrono::milliseconds(10);
  const auto result =
      run_load(server.address(), options, {.next_body = [] { return "{}"; }, .progress = {}, .window_begins = {}, .window_ends = {}});
  EXPECT_EQ(result.unfinished, 1U);
  EXPECT_EQ(result.total.open(), 1U);
}

TEST(RunLoad, ManyListenersAndArrivalsShareOneThread) {
  const ScriptedServer server({ScriptedServer::chunked({samples(10, 9000)})});
  int windows = 0;
  LoadHooks hooks;
  hooks.next_body = [] { return "{}"; };
  hooks.window_begins = [&] { ++windows; };
  hooks.window_ends = [&] { ++windows; };
  LoadOptions closed;
  closed.clients = 8;
  closed.requests = 50;
  EXPECT_EQ(run_load(server.address(), closed, hooks).outcomes.size(), 50U);
  LoadOptions open;
  open.clients = 0;
  open.rate = 2000;
  open.requests = 50;
  const auto result = run_load(server.address(), open, hooks);
  EXPECT_EQ(result.outcomes.size(), 50U);
  EXPECT_EQ(result.unfinished, 0U);
  EXPECT_EQ(windows, 4);
}

TEST(RunLoad, WhatAHookThrowsEndsTheLoad) {
  const ScriptedServer server({ScriptedServer::chunked({samples(10, 9000)})});
  LoadHooks hooks;
  hooks.next_body = []() -> std::string { throw std::logic_error("no more texts"); };
  EXPECT_THROW(run_load(server.address(), {}, hooks), std::logic_error);
}

TEST(ParseServer, TakesAnAddressAndNothingElse) {
  EXPECT_EQ(parse_server("http://127.0.0.1:8080").endpoint.port(), 8080);
  EXPECT_EQ(parse_server("http://127.0.0.1/").endpoint.port(), 80);
  EXPECT_EQ(parse_server("http://[::1]:81").endpoint.address().to_string(), "::1");
  EXPECT_EQ(parse_server("http://[::1]").endpoint.port(), 80);
  for (const auto* wrong : {"", "127.0.0.1:8080", "https://127.0.0.1", "http://", "http://127.0.0.1/v1", "http://127.0.0.1:notaport"})
    EXPECT_THROW(parse_server(wrong), std::runtime_error) << wrong;
}

TEST(Get, SaysWhatIsWrong) {
  const ScriptedServer server({"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"});
  const auto address = server.address();
  EXPECT_THROW(get(address, "/{}"), std::runtime_error);
}

}  // namespace
}  // namespace tts::bench
