#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tts/synthesis/synthesis.h"

#include "prompts.h"
#include "service_fixture.h"

namespace tts::synthesis {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST_F(ServiceTest, RefusesBadOptions) {
  ServiceOptions options;
  options.workers = 0;
  EXPECT_THROW(open(options), std::invalid_argument);
}

TEST_F(ServiceTest, OneSentenceBecomesPackets) {
  const auto synthesis = start(request("Hello there."));
  engine_.wait_submitted(1);
  const auto asked = engine_.utterance(0).request;
  EXPECT_EQ(asked.request_id, "req-1");
  EXPECT_EQ(asked.prompt.tokens, test::FakeFrontEnd::tokens_of("Hello there.", false));
  EXPECT_EQ(asked.prompt.speaker_token, -1);
  EXPECT_EQ(asked.sampling.seed, 42U);
  EXPECT_EQ(asked.sampling.top_k, 17U);
  clock_.advance(milliseconds(250));
  const auto samples = tone(10000);
  speak(0, samples);
  const auto packets = test::drain(synthesis->log());
  EXPECT_FALSE(synthesis->log().error().has_value());
  EXPECT_EQ(test::joined(packets), expected_pcm({samples}));
  EXPECT_EQ(packets.size(), 2U) << "what the engine gave, and what was held back for a cross-fade";
  const auto report = synthesis->report();
  EXPECT_EQ(report.samples, 10000U);
  EXPECT_EQ(report.sentences, 1U);
  EXPECT_EQ(report.steps, 19U);
  EXPECT_DOUBLE_EQ(report.first_packet.count(), 0.25);
  EXPECT_DOUBLE_EQ(report.total.count(), 0.25);
  EXPECT_EQ(synthesis->seed(), 42U);
  EXPECT_TRUE(exports("tts_first_packet_seconds_sum 0.25"));
  EXPECT_TRUE(exports("tts_synthesis_rtf_ratio_count 1"));
}

TEST_F(ServiceTest, TheSpeakerGoesWithThePrompt) {
  auto wanted = request("Hi.");
  wanted.voice = "speaker";
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  EXPECT_EQ(engine_.utterance(0).request.prompt.speaker, voices_[1].speaker);
  EXPECT_EQ(engine_.utterance(0).request.prompt.speaker_token, test::FakeFrontEnd::kSpeakerToken);
  EXPECT_EQ(engine_.utterance(0).request.prompt.tokens.front(), test::FakeFrontEnd::kSpeakerToken);
}

TEST_F(ServiceTest, SentencesAreSubmittedOneAheadAndHeardInOrder) {
  const auto synthesis = start(request("One. Two. Three. Four."));
  engine_.wait_submitted(1);
  const auto a = tone(9000, 0.0F);
  const auto b = tone(8000, 0.1F);
  const auto c = tone(7000, 0.2F);
  const auto d = tone(6000, 0.3F);
  EXPECT_EQ(engine_.submitted(), 1U);
  engine_.pcm(0, std::span(a).first(5000));
  engine_.wait_submitted(2);  // the first has sounded
  speak(1, b);                // complete before the first is
  engine_.pcm(0, std::span(a).subspan(5000), true);
  engine_.done(0);
  engine_.wait_submitted(3);
  speak(2, c);
  engine_.wait_submitted(4);
  EXPECT_EQ(engine_.utterance(3).request.sampling.seed, sentence_seed(42, 3));
  speak(3, d);
  EXPECT_EQ(test::joined(test::drain(synthesis->log())), expected_pcm({a, b, c, d}));
  EXPECT_EQ(synthesis->report().sentences, 4U);
}

TEST_F(ServiceTest, WithoutAheadEachSentenceWaitsForTheOneBefore) {
  ServiceOptions options;
  options.sentences_ahead = 0;
  open(options);
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(9000));
  EXPECT_NE(test::wait_packet(synthesis->log(), 1), nullptr);  // handled, and nothing else submitted
  EXPECT_EQ(engine_.submitted(), 1U);
  engine_.done(0);
  engine_.wait_submitted(2);
}

TEST_F(ServiceTest, TheFirstPacketDoesNotWaitForTheSentenceToEnd) {
  const auto synthesis = start(request("Hello."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(3600));
  const auto first = test::wait_packet(synthesis->log(), 1);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->bytes.size(), 7200U) << "all there is: more follows, so nothing need be held back for a cross-fade";
}

TEST_F(ServiceTest, PacketsAreAsLongAsAsked) {
  auto wanted = request("Hello.");
  wanted.packet = milliseconds(100);
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  speak(0, tone(10000));
  const auto packets = test::drain(synthesis->log());
  ASSERT_EQ(packets.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(packets[i]->bytes.size(), 4800U);
}

TEST_F(ServiceTest, WholeIsOnePacket) {
  auto wanted = request("One. Two.");
  wanted.whole = true;
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  speak(0, tone(9000));
  engine_.wait_submitted(2);
  EXPECT_EQ(synthesis->log().last_seq(), 0U);
  speak(1, tone(8000));
  const auto packets = test::drain(synthesis->log());
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0]->bytes, expected_pcm({tone(9000), tone(8000)}));
}

TEST_F(ServiceTest, RandomSeedsDifferAndFitJson) {
  auto wanted = request("Hi.");
  wanted.seed.reset();
  const auto a = start(wanted);
  const auto b = start(wanted);
  EXPECT_NE(a->seed(), b->seed());
  EXPECT_LT(a->seed(), 1ULL << 53U);
}

TEST_F(ServiceTest, DroppedCharactersAreReported) {
  const auto synthesis = start(request("Hi #."));
  engine_.wait_submitted(1);
  EXPECT_EQ(synthesis->report().dropped, std::vector<std::string>{"#"});
}

TEST_F(ServiceTest, StartRefusesWhatItCannotDo) {
  open();
  auto wanted = request("");
  EXPECT_EQ(service_->start(wanted).error().code, ErrorCode::kInvalidArgument);
  wanted = request("Hi.");
  wanted.voice = "nobody";
  EXPECT_EQ(service_->start(wanted).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(service_->start(wanted).error().param, "voice");
  EXPECT_EQ(service_->running(), 0U);
}

TEST_F(ServiceTest, TextWithNothingToSayEndsTheLog) {
  const auto synthesis = start(request("..."));
  test::wait_end(synthesis->log());
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine_.submitted(), 0U);
}

TEST_F(ServiceTest, TheNumberOfRequestsIsBounded) {
  ServiceOptions options;
  options.max_requests = 2;
  open(options);
  const auto a = start(request("Hi."));
  auto b = start(request("Hi."));
  const auto refused = service_->start(request("Hi."));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kQueueFull);
  EXPECT_EQ(refused.error().retry_after, milliseconds(1000)) << "not at once, though the engine could";
  EXPECT_TRUE(exports("tts_rejected_total{reason=\"queue_full\"} 1"));
  engine_.set_load({.expected_wait = milliseconds(7000)});
  EXPECT_EQ(service_->start(request("Hi.")).error().retry_after, milliseconds(7000));
  EXPECT_EQ(service_->running(), 2U);
}

TEST_F(ServiceTest, StoppedItTakesNothingNewAndFinishesWhatRuns) {
  const auto synthesis = start(request("Hi."));
  service_->stop_accepting();
  EXPECT_EQ(service_->start(request("Hi.")).error().code, ErrorCode::kUnavailable);
  engine_.wait_submitted(1);
  speak(0, tone(5000));
  EXPECT_EQ(test::joined(test::drain(synthesis->log())), expected_pcm({tone(5000)}));
}

TEST_F(ServiceTest, AClientThatLeavesCancelsItsUtterancesAtOnce) {
  auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(9000));
  engine_.wait_submitted(2);
  EXPECT_NE(test::wait_packet(synthesis->log(), 1), nullptr);
  synthesis.reset();
  EXPECT_TRUE(engine_.utterance(0).cancelled) << "on the thread that let go";
  wait_cancelled(1);  // its submission may just be returning on a worker
  EXPECT_EQ(service_->running(), 1U) << "until the engine's final calls";
  engine_.pcm(0, tone(100));
  engine_.fail(0, {ErrorCode::kCancelled, "cancelled", {}, {}});
  engine_.fail(1, {ErrorCode::kCancelled, "cancelled", {}, {}});
  service_.reset();  // waits for the end
  EXPECT_TRUE(exports("tts_cancelled_total{stage=\"streaming\"} 1")) << metrics_.render();
  EXPECT_TRUE(exports("tts_stream_buffer_bytes 0"));
}

TEST_F(ServiceTest, AClientThatLeavesBeforeAnySoundWasQueued) {
  auto synthesis = start(request("One."));
  engine_.wait_submitted(1);
  synthesis.reset();
  engine_.fail(0, {ErrorCode::kCancelled, "cancelled", {}, {}});
  service_.reset();
  EXPECT_TRUE(exports("tts_cancelled_total{stage=\"queued\"} 1"));
}

TEST_F(ServiceTest, ASlowClientPausesItsUtterancesUntilItHasRead) {
  ServiceOptions options;
  options.log = {.high_water_bytes = 10000, .low_water_bytes = 5000};
  open(options);
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  const auto a = tone(12000);
  const auto b = tone(3000);
  engine_.pcm(0, a, true);  // 21,600 bytes leave
  wait_paused(0, true);
  EXPECT_EQ(engine_.submitted(), 1U) << "nothing new for a client that does not read";
  synthesis->log().acknowledge(1);
  wait_paused(0, false);
  engine_.wait_submitted(2);
  engine_.done(0);
  speak(1, b);
  EXPECT_FALSE(synthesis->log().error().has_value());
  test::wait_end(synthesis->log());
  EXPECT_EQ(synthesis->report().samples, 12000U + 3000U - 1200U);
}

TEST_F(ServiceTest, AnUtteranceThatEndedWhileTheClientWasSlowGoesOnLater) {
  ServiceOptions options;
  options.log = {.high_water_bytes = 10000, .low_water_bytes = 5000};
  open(options);
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(12000));
  wait_paused(0, true);
  engine_.done(0);  // nothing is in flight now: only the log's drain can wake the request
  synthesis->log().acknowledge(1);
  engine_.wait_submitted(2);
  speak(1, tone(3000));
  test::wait_end(synthesis->log());
  EXPECT_FALSE(synthesis->log().error().has_value());
}

TEST_F(ServiceTest, ASentenceTooFarAheadPausesUntilItsTurn) {
  ServiceOptions options;
  options.max_ahead_seconds = 1;
  open(options);
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(3600));
  engine_.wait_submitted(2);
  const auto b = tone(24000, 0.2F);
  engine_.pcm(1, b, true);
  wait_paused(1, true);
  engine_.pcm(0, tone(3600), true);
  engine_.done(0);
  wait_paused(1, false);
  engine_.done(1);
  auto a = tone(3600);
  a.insert(a.end(), a.begin(), a.end());
  EXPECT_EQ(test::joined(test::drain(synthesis->log())), expected_pcm({a, b}));
}

TEST_F(ServiceTest, TheEngineLearnsWhenTheListenerRunsDry) {
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  EXPECT_EQ(engine_.utterance(0).request.runs_dry_at, TimePoint{}) << "nothing is heard yet";
  engine_.pcm(0, tone(12000));
  engine_.wait_submitted(2);
  const auto dry = clock_.now() + milliseconds(500);
  EXPECT_EQ(engine_.utterance(1).request.runs_dry_at, dry);
  EXPECT_EQ(engine_.utterance(0).runs_dry_at, dry);
  EXPECT_EQ(engine_.utterance(0).request.listener, engine_.utterance(1).request.listener);
  EXPECT_NE(engine_.utterance(0).request.listener, 0U);
  engine_.pcm(1, tone(2400));  // held for its turn: it lengthens the second sentence's, not the first one's
  synthesis->log().acknowledge(1);
  clock_.advance(milliseconds(100));
  engine_.pcm(0, tone(24000));
  wait_told(0, dry + milliseconds(1000));
  wait_told(1, dry + milliseconds(1100));
}

TEST_F(ServiceTest, WhatWaitsForTheClientHasNotBeenHeard) {
  const auto synthesis = start(request("One."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(12000));
  EXPECT_NE(test::wait_packet(synthesis->log(), 1), nullptr);
  clock_.advance(milliseconds(800));  // the client has read nothing of it
  engine_.pcm(0, tone(2400));
  wait_told(0, clock_.now() + milliseconds(600));
  synthesis->log().acknowledge(2);
  clock_.advance(milliseconds(700));
  engine_.pcm(0, tone(2400));
  wait_told(0, clock_.now() + milliseconds(100));
}

TEST_F(ServiceTest, WhatWaitsInAnOggPageIsNotHeardYet) {
  auto wanted = request("One.");
  wanted.format.container = audio::Container::kOggOpus;
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(22800));  // 47 packets of 20 ms and a half; the page ends with the 45th
  engine_.wait_until([](const auto& all) { return all[0].runs_dry_at != TimePoint{}; });
  const auto left = std::chrono::duration<double>(engine_.utterance(0).runs_dry_at - clock_.now());
  EXPECT_NEAR(left.count(), 0.9 - 120 / 48000.0, 1e-6);
}

TEST_F(ServiceTest, FasterSpeechRunsDrySooner) {
  auto wanted = request("One.");
  wanted.speed = 2.0;
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  const auto began = clock_.now();
  engine_.pcm(0, tone(48000));
  engine_.wait_until([](const auto& all) { return all[0].runs_dry_at != TimePoint{}; });
  EXPECT_LE(engine_.utterance(0).runs_dry_at, began + milliseconds(1000));
  EXPECT_GT(engine_.utterance(0).runs_dry_at, began + milliseconds(800));
}

TEST_F(ServiceTest, NobodyListensToAFileWhileItIsMade) {
  auto wanted = request("One. Two.");
  wanted.whole = true;
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  EXPECT_EQ(engine_.utterance(0).request.delivery, engine::Delivery::kWhole);
  engine_.pcm(0, tone(12000));
  engine_.wait_submitted(2);
  EXPECT_EQ(engine_.utterance(1).request.runs_dry_at, TimePoint{});
  EXPECT_EQ(engine_.utterance(0).runs_dry_at, TimePoint{});
}

TEST_F(ServiceTest, AnEngineFailureEndsTheLogWithTheRequestsId) {
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(9000));
  engine_.wait_submitted(2);
  engine_.fail(0, {ErrorCode::kEngineFailure, "device lost", {}, {}});
  test::wait_end(synthesis->log());
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kEngineFailure);
  EXPECT_THAT(synthesis->log().error()->message, HasSubstr("req-1"));
  wait_cancelled(1);
  engine_.fail(1, {ErrorCode::kCancelled, "cancelled", {}, {}});
}

TEST_F(ServiceTest, AFailureAheadIsHeardOfOnlyAfterWhatComesBefore) {
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(9000));
  engine_.wait_submitted(2);
  engine_.fail(1, {ErrorCode::kEngineFailure, "device lost", {}, {}});
  engine_.pcm(0, tone(9000));
  EXPECT_NE(test::wait_packet(synthesis->log(), 2), nullptr);
  EXPECT_FALSE(synthesis->log().ended());
  engine_.done(0);
  test::wait_end(synthesis->log());
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kEngineFailure);
}

TEST_F(ServiceTest, AFullEngineRefusesARequestThatHasNotBegun) {
  engine_.refuse_next({ErrorCode::kQueueFull, "full", {}, milliseconds(700)});
  const auto synthesis = start(request("One."));
  test::wait_end(synthesis->log());
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kQueueFull);
  EXPECT_EQ(synthesis->log().error()->retry_after, milliseconds(700));
  EXPECT_TRUE(exports("tts_rejected_total{reason=\"queue_full\"} 1"));
}

TEST_F(ServiceTest, ButOneThatHasBegunTriesAgain) {
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  engine_.refuse_next({ErrorCode::kQueueFull, "full", {}, milliseconds(1)});
  speak(0, tone(9000));
  engine_.wait_submitted(2);
  speak(1, tone(8000));
  EXPECT_EQ(test::joined(test::drain(synthesis->log())), expected_pcm({tone(9000), tone(8000)}));
}

TEST_F(ServiceTest, LeavingWhileItWaitsToTryAgainEndsIt) {
  auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  engine_.refuse_next({ErrorCode::kQueueFull, "full", {}, std::chrono::hours(1)});
  speak(0, tone(9000));
  EXPECT_NE(test::wait_packet(synthesis->log(), 1), nullptr);
  synthesis.reset();
  service_.reset();
  EXPECT_EQ(engine_.submitted(), 1U);
}

TEST_F(ServiceTest, ADeadlineBetweenSentencesEndsTheLog) {
  auto wanted = request("One. Two.");
  wanted.deadline = clock_.now() + milliseconds(100);
  ServiceOptions options;
  options.sentences_ahead = 0;
  open(options);
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  EXPECT_EQ(engine_.utterance(0).request.deadline, wanted.deadline);
  clock_.advance(milliseconds(100));
  speak(0, tone(9000));
  test::wait_end(synthesis->log());
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(engine_.submitted(), 1U);
}

TEST_F(ServiceTest, AudioBeyondTheLimitEndsTheLogAndTheWork) {
  ServiceOptions options;
  options.max_audio_seconds = 1;
  open(options);
  const auto synthesis = start(request("One."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(30000));
  test::wait_end(synthesis->log());
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kTooLarge);
  wait_cancelled(0);
  engine_.fail(0, {ErrorCode::kCancelled, "cancelled", {}, {}});
}

TEST_F(ServiceTest, ASentenceWithoutSoundIsPassedOver) {
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  engine_.done(0);
  engine_.wait_submitted(2);
  speak(1, tone(8000));
  EXPECT_EQ(test::joined(test::drain(synthesis->log())), expected_pcm({tone(8000)}));
}

TEST_F(ServiceTest, RefineWritesEachSentenceAnewBeforeItIsSpoken) {
  auto wanted = request("One. Two.");
  wanted.refine = RefineOptions{.prompt = "[laugh_0]"};
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  const auto text_pass = engine_.utterance(0).request;
  EXPECT_EQ(text_pass.prompt.stage, engine::Stage::kText);
  EXPECT_EQ(text_pass.prompt.tokens, *front_end_.prepare_refine("One.", "[laugh_0]"));
  EXPECT_EQ(text_pass.prompt.end_token, test::FakeFrontEnd::kRefineEndToken);
  EXPECT_EQ(text_pass.sampling.seed, refine_seed(42, 0));
  engine_.done(0, {.stop = engine::StopReason::kEndToken, .steps = 3, .samples = 0, .text_tokens = {7, 8, 9}});
  engine_.wait_submitted(2);
  EXPECT_EQ(engine_.utterance(1).request.prompt.stage, engine::Stage::kCode);
  EXPECT_EQ(engine_.utterance(1).request.prompt.tokens, (std::vector<std::int32_t>{7, 8, 9}));
  EXPECT_EQ(engine_.utterance(1).request.sampling.seed, 42U);
  speak(1, tone(9000));
  engine_.wait_submitted(3);
  engine_.done(2);  // an empty refinement keeps the sentence
  engine_.wait_submitted(4);
  EXPECT_EQ(engine_.utterance(3).request.prompt.tokens, test::FakeFrontEnd::tokens_of("Two.", false));
  speak(3, tone(8000));
  EXPECT_EQ(test::joined(test::drain(synthesis->log())), expected_pcm({tone(9000), tone(8000)}));
}

TEST_F(ServiceTest, TheEndOfTheServiceFailsWhatRuns) {
  const auto synthesis = start(request("One."));
  engine_.wait_submitted(1);
  std::thread engine_thread([&] {
    wait_cancelled(0);
    engine_.fail(0, {ErrorCode::kCancelled, "cancelled", {}, {}});
  });
  service_.reset();
  engine_thread.join();
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kUnavailable);
  synthesis->log().acknowledge(1);  // the handle outlives the service
}

TEST_F(ServiceTest, ALogTheConsumerClosedEndsTheWork) {
  const auto synthesis = start(request("One."));
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(9000));
  EXPECT_NE(test::wait_packet(synthesis->log(), 1), nullptr);
  synthesis->log().close();
  engine_.pcm(0, tone(9000));
  wait_cancelled(0);
  engine_.fail(0, {ErrorCode::kCancelled, "cancelled", {}, {}});
}

}  // namespace
}  // namespace tts::synthesis
