// Requests whose text comes piece by piece.
#include <algorithm>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tts/synthesis/synthesis.h"

#include "prompts.h"
#include "service_fixture.h"

namespace tts::synthesis {
namespace {

using resume::Mark;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Packets = std::vector<std::shared_ptr<const resume::Packet>>;

Mark sentence(std::uint32_t index, std::uint64_t begin, std::uint64_t end, std::uint64_t first_sample) {
  return {.kind = Mark::Kind::kSentence, .index = index, .begin = begin, .end = end, .first_sample = first_sample};
}
Mark flushed(std::uint64_t end, std::uint64_t first_sample) {
  return {.kind = Mark::Kind::kFlushed, .index = 0, .begin = 0, .end = end, .first_sample = first_sample};
}

SpeechChange voice(std::string id) {
  SpeechChange change;
  change.voice = std::move(id);
  return change;
}

std::vector<Mark> marks_of(const Packets& packets) {
  std::vector<Mark> marks;
  for (const auto& packet : packets) marks.insert(marks.end(), packet->marks.begin(), packet->marks.end());
  return marks;
}

std::vector<std::uint8_t> operator+(std::vector<std::uint8_t> a, const std::vector<std::uint8_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class IncrementalTest : public ServiceTest {
 protected:
  static SynthesisRequest incremental() {
    auto wanted = request("");
    wanted.incremental = true;
    return wanted;
  }

  void append(const std::unique_ptr<Synthesis>& synthesis, std::string_view text) { EXPECT_TRUE(synthesis->append_text(text).ok()); }

  // Every packet up to the one that has `count` kFlushed marks before or on it.
  Packets until_flushed(Synthesis& synthesis, std::uint32_t from = 1, std::size_t count = 1) {
    Packets packets;
    for (std::uint32_t seq = from; count > 0; ++seq) {
      auto packet = test::wait_packet(synthesis.log(), seq);
      if (!packet) {
        ADD_FAILURE() << "the log ended";
        return packets;
      }
      for (const Mark& mark : packet->marks) count -= mark.kind == Mark::Kind::kFlushed;
      packets.push_back(std::move(packet));
    }
    return packets;
  }

  // Waits until all that was flushed is spoken and everything about it has been noted; returns the number of the last packet.
  std::uint32_t until_quiet(Synthesis& synthesis, std::uint32_t from = 1) {
    const auto seq = until_flushed(synthesis, from).back()->seq;
    synthesis.flush_text();
    return until_flushed(synthesis, seq + 1).back()->seq;
  }

  std::string said(std::size_t index) const {
    std::string text;
    for (const auto token : engine_.utterance(index).request.prompt.tokens) {
      if (token < 256) text += static_cast<char>(token);
    }
    return text;
  }

  // Time passes, whichever thread sees it first.
  template <class Predicate>
  void pass_time_until(Predicate holds) {
    while (!holds()) {
      clock_.advance(milliseconds(1));
      std::this_thread::yield();
    }
  }
};

TEST_F(IncrementalTest, ASentenceIsSpokenAsSoonAsItIsCertain) {
  const auto synthesis = start(incremental());
  append(synthesis, "Hello");
  append(synthesis, " there. ");
  EXPECT_EQ(engine_.submitted(), 0U);
  append(synthesis, "How");
  engine_.wait_submitted(1);
  EXPECT_EQ(said(0), "Hello there.");
  EXPECT_EQ(engine_.utterance(0).request.sampling.seed, 42U);
  EXPECT_EQ(engine_.utterance(0).request.deadline, TimePoint::max());
  EXPECT_EQ(synthesis->characters(), 16U);
  engine_.pcm(0, tone(9000), true);
  append(synthesis, " are you?\n");
  engine_.wait_submitted(2);
  EXPECT_EQ(said(1), "How are you?");
  EXPECT_EQ(engine_.utterance(1).request.sampling.seed, sentence_seed(42, 1));
}

TEST_F(IncrementalTest, WithAllTheTextInTimeTheAudioIsThatOfTheWhole) {
  const auto synthesis = start(incremental());
  for (const char* piece : {"One", ". Tw", "o. Three.", " "}) append(synthesis, piece);
  synthesis->end_text();
  const auto a = tone(9000, 0.0F), b = tone(8000, 0.1F), c = tone(7000, 0.2F);
  engine_.wait_submitted(1);
  speak(0, a);
  engine_.wait_submitted(2);
  speak(1, b);
  engine_.wait_submitted(3);
  speak(2, c);
  const auto packets = test::drain(synthesis->log());
  EXPECT_FALSE(synthesis->log().error().has_value());
  EXPECT_EQ(test::joined(packets), expected_pcm({a, b, c}));
  EXPECT_EQ(synthesis->report().sentences, 3U);
  EXPECT_EQ(synthesis->report().samples, 24000U - 2400U);
}

TEST_F(IncrementalTest, MarksTellWhereSentencesBegin) {
  const auto synthesis = start(incremental());
  append(synthesis, " Vóilà one.");
  append(synthesis, "  Twö. \n");
  synthesis->end_text();
  engine_.wait_submitted(1);
  speak(0, tone(9000));
  engine_.wait_submitted(2);
  speak(1, tone(8000));
  const auto packets = test::drain(synthesis->log());
  EXPECT_THAT(marks_of(packets), ElementsAre(sentence(0, 1, 11, 0), sentence(1, 13, 17, 7800)));
  EXPECT_THAT(packets.front()->marks, ElementsAre(sentence(0, 1, 11, 0)));
  EXPECT_EQ(packets.front()->first_sample, 0U);
  EXPECT_EQ(synthesis->characters(), 19U);
}

TEST_F(IncrementalTest, RequestsWithTheirWholeTextHaveNoMarks) {
  const auto synthesis = start(request("One. Two."));
  engine_.wait_submitted(1);
  speak(0, tone(9000));
  engine_.wait_submitted(2);
  speak(1, tone(8000));
  EXPECT_THAT(marks_of(test::drain(synthesis->log())), IsEmpty());
  EXPECT_EQ(synthesis->append_text("x").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(synthesis->change({}).error().code, ErrorCode::kInvalidArgument);
  synthesis->flush_text();
  synthesis->end_text();
}

TEST_F(IncrementalTest, AFlushSpeaksWhatIsHeldToItsLastSample) {
  const auto synthesis = start(incremental());
  append(synthesis, "Hello wor");
  synthesis->flush_text();
  engine_.wait_submitted(1);
  EXPECT_EQ(said(0), "Hello wor");
  speak(0, tone(9000));
  const auto packets = until_flushed(*synthesis);
  EXPECT_EQ(test::joined(packets), expected_pcm({tone(9000)})) << "without a cross-fade held back";
  EXPECT_TRUE(packets.back()->bytes.empty()) << "the mark stands behind the audio";
  EXPECT_THAT(packets.back()->marks, ElementsAre(flushed(9, 9000)));
}

TEST_F(IncrementalTest, AFlushOfNothingIsAnsweredAtOnce) {
  const auto synthesis = start(incremental());
  synthesis->flush_text();
  EXPECT_THAT(until_flushed(*synthesis).back()->marks, ElementsAre(flushed(0, 0)));
  append(synthesis, " ... ");
  synthesis->flush_text();
  EXPECT_THAT(until_flushed(*synthesis, 2).back()->marks, ElementsAre(flushed(5, 0))) << "nothing in it to say is no error";
  synthesis->flush_text();
  EXPECT_THAT(until_flushed(*synthesis, 3).back()->marks, ElementsAre(flushed(5, 0)));
  EXPECT_EQ(engine_.submitted(), 0U);
  synthesis->end_text();
  test::wait_end(synthesis->log());
  EXPECT_FALSE(synthesis->log().error().has_value());
  EXPECT_EQ(synthesis->report().samples, 0U);
}

TEST_F(IncrementalTest, FlushesStandBetweenTheSentencesTheyWereAskedBetween) {
  const auto synthesis = start(incremental());
  append(synthesis, "One");
  synthesis->flush_text();
  append(synthesis, "Two");
  synthesis->flush_text();
  synthesis->flush_text();
  append(synthesis, "Three");
  synthesis->end_text();
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(3600));
  engine_.wait_submitted(2);
  speak(1, tone(8000, 0.1F));  // complete before the first is
  engine_.pcm(0, tone(9000), true);
  engine_.done(0);
  engine_.wait_submitted(3);
  EXPECT_EQ(said(2), "Three");
  speak(2, tone(7000, 0.2F));
  const auto packets = test::drain(synthesis->log());
  EXPECT_THAT(marks_of(packets), ElementsAre(sentence(0, 0, 3, 0), flushed(3, 12600), sentence(1, 3, 6, 12600), flushed(6, 20600),
                                             flushed(6, 20600), sentence(2, 6, 11, 20600)));
  auto first = tone(3600);
  const auto second = tone(9000);
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(test::joined(packets), expected_pcm({first}) + expected_pcm({tone(8000, 0.1F)}) + expected_pcm({tone(7000, 0.2F)}));
  std::uint64_t samples = 0;
  for (const auto& packet : packets) {
    EXPECT_EQ(packet->first_sample, samples);
    for (const Mark& mark : packet->marks) EXPECT_EQ(mark.first_sample, samples);
    samples += packet->bytes.size() / 2;
  }
}

TEST_F(IncrementalTest, WithoutAnythingToSayItFinishesWithoutAudioAndWithoutAnError) {
  for (const char* text : {"", " \n", "...", "( - )\n\n"}) {
    const auto synthesis = start(incremental());
    append(synthesis, text);
    synthesis->end_text();
    EXPECT_THAT(test::drain(synthesis->log()), IsEmpty()) << text;
    EXPECT_FALSE(synthesis->log().error().has_value()) << text;
  }
  EXPECT_EQ(engine_.submitted(), 0U);
}

TEST_F(IncrementalTest, TextWithNothingToSayGoesWithWhatComesAfterIt) {
  const auto synthesis = start(incremental());
  append(synthesis, "...\n");
  append(synthesis, "(..)\n");
  append(synthesis, "So, yes\n");
  engine_.wait_submitted(1);
  EXPECT_EQ(said(0), "So, yes\n");
  speak(0, tone(9000));
  const auto first = test::wait_packet(synthesis->log(), 1);
  EXPECT_THAT(first->marks, ElementsAre(sentence(0, 9, 17, 0)));
}

TEST_F(IncrementalTest, TextHeldTooLongIsSpokenUpToItsLastClause) {
  auto wanted = incremental();
  wanted.max_buffer_delay = milliseconds(1);
  const auto synthesis = start(wanted);
  append(synthesis, "Well, this is");
  pass_time_until([&] { return engine_.submitted() > 0; });
  EXPECT_EQ(said(0), "Well, ");
  speak(0, tone(9000));
  pass_time_until([&] { return engine_.submitted() > 1; });
  EXPECT_EQ(said(1), "this ");
  speak(1, tone(9000));
  pass_time_until([&] { return engine_.submitted() > 2; });
  EXPECT_EQ(said(2), "is");
}

TEST_F(IncrementalTest, WithoutADelayTextIsHeldForEver) {
  auto wanted = incremental();
  wanted.max_buffer_delay = milliseconds(0);
  const auto synthesis = start(wanted);
  append(synthesis, "Well, this");
  clock_.advance(std::chrono::hours(1));
  append(synthesis, " is");
  clock_.advance(std::chrono::hours(1));
  synthesis->flush_text();
  engine_.wait_submitted(1);
  EXPECT_EQ(said(0), "Well, this is");
}

TEST_F(IncrementalTest, WhatComesWhileTheListenerHearsIsFadedIn) {
  const auto synthesis = start(incremental());
  append(synthesis, "One. T");
  engine_.wait_submitted(1);
  speak(0, tone(24000));
  EXPECT_NE(test::wait_packet(synthesis->log(), 1), nullptr);
  append(synthesis, "wo.");
  synthesis->end_text();
  engine_.wait_submitted(2);
  EXPECT_EQ(engine_.utterance(1).request.runs_dry_at, clock_.now() + milliseconds(950));
  speak(1, tone(8000));
  EXPECT_EQ(test::joined(test::drain(synthesis->log())), expected_pcm({tone(24000), tone(8000)}));
}

TEST_F(IncrementalTest, NoEndOfASentenceIsHeldBackFromAListenerWhoRunsDry) {
  const auto synthesis = start(incremental());
  append(synthesis, "One.\n");
  engine_.wait_submitted(1);
  speak(0, tone(9000));
  const auto first = test::wait_packet(synthesis->log(), 1);
  EXPECT_EQ(first->bytes.size(), 2U * 7800U);
  synthesis->log().acknowledge(1);
  std::uint32_t passed = 0;
  pass_time_until([&] {
    ++passed;
    return synthesis->log().last_seq() > 1;
  });
  EXPECT_GE(passed, 70U) << "325 ms of sound, less a margin";
  EXPECT_EQ(test::wait_packet(synthesis->log(), 2)->bytes.size(), 2U * 1200U);
  synthesis->log().acknowledge(2);
  append(synthesis, "Two.\n");
  engine_.wait_submitted(2);
  speak(1, tone(8000));
  synthesis->end_text();
  EXPECT_EQ(test::joined(test::drain(synthesis->log(), 3)), expected_pcm({tone(8000)}));
}

TEST_F(IncrementalTest, ASilenceForWantOfTextIsOwedToNobody) {
  const auto synthesis = start(incremental());
  append(synthesis, "One.");
  synthesis->flush_text();
  engine_.wait_submitted(1);
  speak(0, tone(9000));
  synthesis->log().acknowledge(until_quiet(*synthesis));
  clock_.advance(seconds(10));
  append(synthesis, "Two.");
  synthesis->flush_text();
  engine_.wait_submitted(2);
  EXPECT_EQ(engine_.utterance(1).request.runs_dry_at, TimePoint{}) << "as at the first sound";
  EXPECT_EQ(engine_.utterance(1).request.listener, engine_.utterance(0).request.listener);
  engine_.pcm(1, tone(2400));
  wait_told(1, clock_.now() + milliseconds(100));
}

TEST_F(IncrementalTest, WaitingForTextIsNoWork) {
  const auto synthesis = start(incremental());
  synthesis->flush_text();
  until_flushed(*synthesis);
  clock_.advance(seconds(100));
  append(synthesis, "One.");
  synthesis->flush_text();
  engine_.wait_submitted(1);
  clock_.advance(milliseconds(500));
  speak(0, tone(24000));
  until_quiet(*synthesis, 2);
  clock_.advance(seconds(100));
  synthesis->end_text();
  test::wait_end(synthesis->log());
  EXPECT_TRUE(exports("tts_synthesis_rtf_ratio_sum 0.5")) << metrics_.render();
  EXPECT_TRUE(exports("tts_first_packet_seconds_sum 0.5"));
  EXPECT_DOUBLE_EQ(synthesis->report().first_packet.count(), 0.5);
  EXPECT_DOUBLE_EQ(synthesis->report().total.count(), 200.5);
}

TEST_F(IncrementalTest, AnotherVoiceSpeaksFromTheNextSentenceOn) {
  const auto synthesis = start(incremental());
  append(synthesis, "One é. Two. Three.");
  synthesis->flush_text();
  engine_.wait_submitted(1);
  EXPECT_TRUE(synthesis->change(voice("speaker")).ok());
  engine_.pcm(0, tone(9000), true);
  engine_.wait_submitted(2);
  EXPECT_EQ(engine_.utterance(0).request.prompt.speaker, nullptr);
  EXPECT_EQ(engine_.utterance(1).request.prompt.speaker, voices_[1].speaker);
  EXPECT_EQ(engine_.utterance(1).request.prompt.tokens, test::FakeFrontEnd::tokens_of("Two.", true));
  EXPECT_EQ(engine_.utterance(1).request.sampling.seed, sentence_seed(42, 1));
  EXPECT_TRUE(synthesis->change(voice("plain")).ok());
  engine_.done(0);
  speak(1, tone(8000));
  engine_.wait_submitted(3);
  EXPECT_EQ(engine_.utterance(2).request.prompt.tokens, test::FakeFrontEnd::tokens_of("Three.", false));
  speak(2, tone(7000));
  const auto packets = until_flushed(*synthesis);
  EXPECT_THAT(marks_of(packets), ElementsAre(sentence(0, 0, 6, 0), sentence(1, 7, 11, 7800), sentence(2, 12, 18, 14600),
                                             flushed(18, 24000 - 2400)))
      << "the flush is not lost with the sentences that were prepared anew";
  EXPECT_EQ(synthesis->report().sentences, 3U);
}

TEST_F(IncrementalTest, ASentenceThatWaitsForAFullEngineKeepsItsVoice) {
  const auto synthesis = start(incremental());
  append(synthesis, "One. Two.");
  synthesis->flush_text();
  engine_.wait_submitted(1);
  engine_.refuse_next({ErrorCode::kQueueFull, "full", {}, milliseconds(1)});
  engine_.pcm(0, tone(9000));
  EXPECT_NE(test::wait_packet(synthesis->log(), 1), nullptr);
  EXPECT_TRUE(synthesis->change(voice("speaker")).ok());
  engine_.wait_submitted(2);
  EXPECT_EQ(engine_.utterance(1).request.prompt.speaker, nullptr);
  EXPECT_EQ(engine_.utterance(1).request.prompt.tokens, test::FakeFrontEnd::tokens_of("Two.", false));
}

TEST_F(IncrementalTest, OtherChangesCountFromTheNextSentenceOn) {
  const auto synthesis = start(incremental());
  append(synthesis, "One. Two.");
  synthesis->flush_text();
  engine_.wait_submitted(1);
  SpeechChange change;
  change.speed = 2.0;
  change.latency = engine::Latency::kExact;
  change.sampling.top_k = 5;
  EXPECT_TRUE(synthesis->change(change).ok());
  engine_.pcm(0, tone(24000), true);
  engine_.wait_submitted(2);
  EXPECT_EQ(engine_.utterance(0).request.pace, 1.0);
  EXPECT_EQ(engine_.utterance(0).request.sampling.top_k, 17U);
  EXPECT_EQ(engine_.utterance(1).request.pace, 2.0);
  EXPECT_EQ(engine_.utterance(1).request.sampling.top_k, 5U);
  EXPECT_EQ(engine_.utterance(1).request.latency, engine::Latency::kExact);
  engine_.done(0);
  speak(1, tone(24000));
  const auto packets = until_flushed(*synthesis);
  const auto marks = marks_of(packets);
  ASSERT_EQ(marks.size(), 3U);
  EXPECT_EQ(marks[1], sentence(1, 5, 9, 24000)) << "at a change of speed nothing is faded";
  EXPECT_NEAR(static_cast<double>(marks[2].first_sample), 36000, 500);
  const auto bytes = test::joined(packets);
  const auto first = expected_pcm({tone(24000)});
  ASSERT_GT(bytes.size(), first.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), bytes.begin()));
  EXPECT_EQ(bytes.size(), marks[2].first_sample * 2);
}

TEST_F(IncrementalTest, ChangesThatCannotBeAreRefusedAtOnce) {
  const auto synthesis = start(incremental());
  EXPECT_EQ(synthesis->change(voice("nobody")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(synthesis->change(voice("nobody")).error().param, "voice");
  SpeechChange fast;
  fast.speed = 2.5;
  EXPECT_EQ(synthesis->change(fast).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(synthesis->change(fast).error().param, "speed");
}

TEST_F(IncrementalTest, TextIsTakenWholeOrNotAtAll) {
  ServiceOptions options;
  options.max_text_chars = 10;
  open(options);
  const auto synthesis = start(incremental());
  append(synthesis, "ééééé678");
  const auto refused = synthesis->append_text("9ab");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(refused.error().message, HasSubstr("10"));
  EXPECT_EQ(synthesis->append_text("\xC3\x28").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(synthesis->append_text(std::string_view("a\0", 2)).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(synthesis->characters(), 8U);
  append(synthesis, "9a");
  EXPECT_FALSE(synthesis->append_text("b").ok());
  synthesis->flush_text();
  engine_.wait_submitted(1);
  EXPECT_EQ(said(0), "ééééé6789a");
  append(synthesis, "0123456789");
  EXPECT_EQ(synthesis->characters(), 20U);
  synthesis->end_text();
  EXPECT_EQ(synthesis->append_text("x").error().code, ErrorCode::kInvalidArgument);
  speak(0, tone(3000));
  engine_.wait_submitted(2);
  speak(1, tone(3000));
  test::wait_end(synthesis->log());
  EXPECT_TRUE(synthesis->append_text("x").ok()) << "ignored";
  EXPECT_EQ(synthesis->characters(), 20U);
}

TEST_F(IncrementalTest, StartRefusesWhatDoesNotGoTogether) {
  open();
  auto wanted = incremental();
  wanted.text = "Hi.";
  EXPECT_EQ(service_->start(wanted).error().param, "text");
  wanted = incremental();
  wanted.whole = true;
  EXPECT_EQ(service_->start(wanted).error().code, ErrorCode::kInvalidArgument);
  wanted = incremental();
  for (const auto delay : {milliseconds(-1), milliseconds(600001)}) {
    wanted.max_buffer_delay = delay;
    EXPECT_EQ(service_->start(wanted).error().param, "max_buffer_delay");
  }
}

TEST_F(IncrementalTest, OneThatWaitsCountsAsRunningAndEndsAtOnceWhenItsClientLeaves) {
  ServiceOptions options;
  options.max_requests = 1;
  open(options);
  auto wanted = incremental();
  wanted.max_buffer_delay = std::chrono::minutes(10);
  auto synthesis = start(wanted);
  append(synthesis, "Hello");  // a timer runs
  EXPECT_EQ(service_->start(incremental()).error().code, ErrorCode::kQueueFull);
  EXPECT_EQ(service_->running(), 1U);
  synthesis.reset();
  service_.reset();  // would wait for the timer if it still ran
  EXPECT_EQ(engine_.submitted(), 0U);
}

TEST_F(IncrementalTest, TheEndOfTheServiceFailsOneThatWaits) {
  const auto synthesis = start(incremental());
  append(synthesis, "Hello");
  service_.reset();
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kUnavailable);
  append(synthesis, "too late, and ignored");
  synthesis->flush_text();
  synthesis->end_text();
  EXPECT_TRUE(synthesis->change(voice("speaker")).ok());
}

TEST_F(IncrementalTest, TextIsNoReasonToGoOnForAListenerWhoDoesNotRead) {
  ServiceOptions options;
  options.log = {.high_water_bytes = 10000, .low_water_bytes = 5000};
  open(options);
  const auto synthesis = start(incremental());
  append(synthesis, "One.\n");
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(12000));
  wait_paused(0, true);
  append(synthesis, "Two.\n");
  engine_.pcm(0, tone(2400));
  EXPECT_NE(test::wait_packet(synthesis->log(), 2), nullptr);  // the text has been looked at before
  EXPECT_TRUE(engine_.utterance(0).paused);
  EXPECT_EQ(engine_.submitted(), 1U);
  synthesis->log().acknowledge(2);
  wait_paused(0, false);
  engine_.wait_submitted(2);
}

TEST_F(IncrementalTest, FlushesDoNotPileUpForAListenerWhoDoesNotRead) {
  ServiceOptions options;
  options.log = {.high_water_bytes = 20, .low_water_bytes = 10};
  open(options);
  const auto synthesis = start(incremental());
  synthesis->flush_text();
  until_flushed(*synthesis);
  for (int i = 0; i < 300; ++i) synthesis->flush_text();
  synthesis->log().acknowledge(1);
  const auto second = test::wait_packet(synthesis->log(), 2);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->marks.size(), 100U);
}

TEST_F(IncrementalTest, DroppedCharactersAreCollected) {
  const auto synthesis = start(incremental());
  append(synthesis, "Hi #.\n");
  engine_.wait_submitted(1);
  append(synthesis, "Yo #.\n");
  speak(0, tone(9000));
  engine_.wait_submitted(2);
  EXPECT_EQ(synthesis->report().dropped, std::vector<std::string>{"#"});
}

TEST_F(IncrementalTest, ASentenceWithoutSoundHasNoMark) {
  const auto synthesis = start(incremental());
  append(synthesis, "One. Two.");
  synthesis->end_text();
  engine_.wait_submitted(1);
  engine_.done(0);
  engine_.wait_submitted(2);
  speak(1, tone(8000));
  EXPECT_THAT(marks_of(test::drain(synthesis->log())), ElementsAre(sentence(1, 5, 9, 0)));
}

TEST_F(IncrementalTest, AMarkIsNotLostWhenNoPacketComesBehindIt) {
  auto wanted = incremental();
  wanted.format.container = audio::Container::kMp3;  // keeps a short sentence back until the end
  const auto synthesis = start(wanted);
  append(synthesis, "One.");
  synthesis->flush_text();
  engine_.wait_submitted(1);
  speak(0, tone(400));
  const auto packets = until_flushed(*synthesis);
  EXPECT_THAT(marks_of(packets), ElementsAre(sentence(0, 0, 4, 0), flushed(4, 400)));
}

TEST_F(IncrementalTest, AnEngineFailureEndsTheLog) {
  const auto synthesis = start(incremental());
  append(synthesis, "One.\n");
  engine_.wait_submitted(1);
  engine_.fail(0, {ErrorCode::kEngineFailure, "device lost", {}, {}});
  test::wait_end(synthesis->log());
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kEngineFailure);
  append(synthesis, "ignored");
}

TEST_F(IncrementalTest, ADeadlineCountsWhereOneIsSet) {
  auto wanted = incremental();
  wanted.deadline = clock_.now() + milliseconds(100);
  const auto synthesis = start(wanted);
  clock_.advance(milliseconds(100));
  append(synthesis, "One.\n");
  test::wait_end(synthesis->log());
  EXPECT_EQ(synthesis->log().error()->code, ErrorCode::kDeadlineExceeded);
}

TEST_F(IncrementalTest, BareOpusPacketsKeepTheirPlaceOverAPause) {
  auto wanted = incremental();
  wanted.format = {.container = audio::Container::kOpusPackets, .sample_rate = 24000, .bitrate = 48000};
  const auto synthesis = start(wanted);
  EXPECT_EQ(synthesis->pre_skip(), 60U);
  for (const char* text : {"One.", "Two."}) {
    append(synthesis, text);
    synthesis->flush_text();
  }
  engine_.wait_submitted(1);
  speak(0, tone(9000));
  engine_.wait_submitted(2);
  speak(1, tone(9000));
  synthesis->end_text();
  const auto packets = test::drain(synthesis->log());
  std::uint64_t opus_packets = 0;
  for (const auto& packet : packets) {
    const std::uint64_t decoded = opus_packets * 480;
    EXPECT_EQ(packet->first_sample, decoded - std::min<std::uint64_t>(decoded, 60));
    for (std::size_t at = 0; at < packet->bytes.size();) {
      at += 2U + (packet->bytes[at] | packet->bytes[at + 1] << 8);
      ++opus_packets;
    }
  }
  const auto marks = marks_of(packets);
  ASSERT_EQ(marks.size(), 4U);
  EXPECT_EQ(marks[1], flushed(4, 9120)) << "what it takes to bring the last sample out: 19 packets";
  EXPECT_EQ(marks[2], sentence(1, 4, 8, 9120));
  EXPECT_EQ(marks[3], flushed(8, 18240));
  EXPECT_EQ(opus_packets, 38U);
  EXPECT_EQ(synthesis->report().samples, 18240U);
}

TEST_F(ServiceTest, TheLagOfBareOpusPacketsIsKnownFromTheStart) {
  auto wanted = request("Hi.");
  EXPECT_EQ(start(wanted)->pre_skip(), 0U);
  wanted.format = {.container = audio::Container::kOpusPackets, .sample_rate = 24000, .bitrate = 24000};
  EXPECT_EQ(start(wanted)->pre_skip(), 156U);
  wanted.format.bitrate = 64000;
  EXPECT_EQ(start(wanted)->pre_skip(), 60U);
  wanted.adaptive_bitrate = true;
  EXPECT_EQ(start(wanted)->pre_skip(), 156U);
  wanted.format.bitrate = 1;
  EXPECT_EQ(service_->start(wanted).error().param, "bitrate");
}

TEST_F(ServiceTest, TheBitrateChangesWhileItSpeaks) {
  auto wanted = request("One.");
  wanted.format = {.container = audio::Container::kOpusPackets, .sample_rate = 24000, .bitrate = 64000};
  wanted.adaptive_bitrate = true;
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(24000));
  synthesis->set_bitrate(8000);
  engine_.pcm(0, tone(24000));
  EXPECT_NE(test::wait_packet(synthesis->log(), 2), nullptr);
  EXPECT_LT(synthesis->log().next(2)->bytes.size() * 2, synthesis->log().next(1)->bytes.size());
}

TEST_F(ServiceTest, TheListenersOwnReportTakesThePlaceOfTheEstimate) {
  const auto synthesis = start(request("One."));
  engine_.wait_submitted(1);
  synthesis->report_runs_dry_at(clock_.now() - milliseconds(1));  // says nothing before the first sound
  engine_.pcm(0, tone(12000));
  wait_told(0, clock_.now() + milliseconds(500));
  synthesis->log().acknowledge(1);
  const auto reported = clock_.now() + milliseconds(200);
  synthesis->report_runs_dry_at(reported);
  wait_told(0, reported);
  engine_.pcm(0, tone(2400));
  wait_told(0, reported + milliseconds(100));
  synthesis->report_runs_dry_at(clock_.now() + seconds(9));
  wait_told(0, clock_.now() + seconds(9) + milliseconds(100));  // the last packet is still in the log
  synthesis->report_runs_dry_at(clock_.now() - seconds(9));
  wait_told(0, clock_.now() + milliseconds(100));
}

TEST_F(ServiceTest, ARequestMayHaveALogOfItsOwnSize) {
  auto wanted = request("One.");
  wanted.log = {.high_water_bytes = 1000, .low_water_bytes = 500};
  const auto synthesis = start(wanted);
  engine_.wait_submitted(1);
  engine_.pcm(0, tone(500));
  wait_paused(0, true);
  synthesis->log().acknowledge(1);
  wait_paused(0, false);
}

TEST_F(ServiceTest, AListenerWhoHearsSomethingElseHasTimeForTheFirstSound) {
  const auto synthesis = start(request("One."));
  engine_.wait_submitted(1);
  const auto reported = clock_.now() + seconds(2);
  synthesis->report_runs_dry_at(reported);
  wait_told(0, reported);
  engine_.pcm(0, tone(2400));
  wait_told(0, reported + milliseconds(100));
}

}  // namespace
}  // namespace tts::synthesis
