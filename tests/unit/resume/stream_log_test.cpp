#include "tts/resume/stream_log.h"

#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace tts::resume {
namespace {

std::vector<std::uint8_t> bytes(std::size_t count, std::uint8_t value = 7) { return std::vector<std::uint8_t>(count, value); }

StreamLogOptions small() { return {.high_water_bytes = 100, .low_water_bytes = 40}; }

TEST(StreamLog, NumbersPacketsFromOne) {
  StreamLog log;
  EXPECT_EQ(log.last_seq(), 0U);
  EXPECT_EQ(log.next(1), nullptr);
  log.append(0, bytes(3, 1));
  log.append(2400, bytes(4, 2));
  ASSERT_NE(log.next(1), nullptr);
  EXPECT_EQ(log.next(1)->seq, 1U);
  EXPECT_EQ(log.next(1)->first_sample, 0U);
  EXPECT_EQ(log.next(2)->first_sample, 2400U);
  EXPECT_EQ(log.next(2)->bytes, bytes(4, 2));
  EXPECT_EQ(log.next(3), nullptr);
  EXPECT_EQ(log.last_seq(), 2U);
  EXPECT_EQ(log.held_bytes(), 7U);
}

TEST(StreamLog, TellsWhereTheWaitingAudioBegins) {
  StreamLog log;
  EXPECT_EQ(log.first_held_sample(), std::nullopt);
  log.append(0, bytes(3));
  log.append(2400, bytes(3));
  log.append(4800, bytes(3));
  EXPECT_EQ(log.first_held_sample(), 0U);
  log.acknowledge(2);
  EXPECT_EQ(log.first_held_sample(), 4800U);
  log.acknowledge(3);
  EXPECT_EQ(log.first_held_sample(), std::nullopt);
}

TEST(StreamLog, MarksRideOnPacketsWithAndWithoutAudio) {
  StreamLog log;
  const Mark sentence{.kind = Mark::Kind::kSentence, .index = 3, .begin = 10, .end = 20, .first_sample = 2400};
  const Mark flushed{.kind = Mark::Kind::kFlushed, .index = 0, .begin = 0, .end = 20, .first_sample = 4800};
  log.append(0, bytes(4));
  log.append(2400, bytes(4), {sentence});
  log.append(4800, {}, {flushed, flushed});
  EXPECT_TRUE(log.next(1)->marks.empty());
  EXPECT_EQ(log.next(2)->marks, std::vector<Mark>{sentence});
  EXPECT_EQ(log.next(2)->bytes, bytes(4));
  EXPECT_EQ(log.next(3)->marks, (std::vector<Mark>{flushed, flushed}));
  EXPECT_TRUE(log.next(3)->bytes.empty());
  EXPECT_EQ(log.next(3)->first_sample, 4800U);
}

TEST(StreamLog, MarksCountAsHeldSoThatTheyAreBoundedToo) {
  StreamLog log(small());
  EXPECT_FALSE(log.append(0, {}, std::vector<Mark>(100 / sizeof(Mark) + 1)));
  EXPECT_GE(log.held_bytes(), 100U);
  log.acknowledge(1);
  EXPECT_EQ(log.held_bytes(), 0U);
}

TEST(StreamLog, NoPacketHasNumberZero) {
  StreamLog log;
  EXPECT_EQ(log.next(0), nullptr);
  log.append(0, bytes(1));
  EXPECT_EQ(log.next(0), nullptr);
}

TEST(StreamLog, AcknowledgedPacketsAreDroppedButLiveWhileHeldByTheReader) {
  StreamLog log;
  for (int i = 0; i < 4; ++i) log.append(0, bytes(10, static_cast<std::uint8_t>(i)));
  const auto second = log.next(2);
  log.acknowledge(2);
  EXPECT_EQ(log.held_bytes(), 20U);
  EXPECT_EQ(log.next(1), nullptr);
  EXPECT_EQ(log.next(2), nullptr);
  ASSERT_NE(log.next(3), nullptr);
  EXPECT_EQ(log.next(3)->seq, 3U);
  EXPECT_EQ(second->bytes, bytes(10, 1));
}

TEST(StreamLog, AcknowledgingWhatWasNeverSentDropsOnlyWhatIsThere) {
  StreamLog log;
  log.append(0, bytes(10));
  log.acknowledge(4000000000U);
  EXPECT_EQ(log.held_bytes(), 0U);
  log.append(0, bytes(5));
  ASSERT_NE(log.next(2), nullptr);
  log.acknowledge(1);  // late and repeated acknowledgements change nothing
  EXPECT_EQ(log.held_bytes(), 5U);
}

TEST(StreamLog, TellsTheProducerToPauseAtHighWaterAndToGoOnBelowLowWater) {
  StreamLog log(small());
  int drained = 0;
  log.set_drain_callback([&] { ++drained; });
  EXPECT_TRUE(log.append(0, bytes(60)));
  EXPECT_FALSE(log.append(0, bytes(40)));  // exactly at the mark
  EXPECT_FALSE(log.append(0, bytes(30)));  // taken all the same
  EXPECT_EQ(log.held_bytes(), 130U);
  log.acknowledge(1);  // 70 left
  EXPECT_EQ(drained, 0);
  log.acknowledge(2);  // 30 left
  EXPECT_EQ(drained, 1);
  log.acknowledge(3);
  EXPECT_EQ(drained, 1) << "only the crossing counts";
}

TEST(StreamLog, BelowHighWaterNothingDrains) {
  StreamLog log(small());
  int drained = 0;
  log.set_drain_callback([&] { ++drained; });
  log.append(0, bytes(99));
  log.acknowledge(1);
  EXPECT_EQ(drained, 0);
}

TEST(StreamLog, DrainCallbackMayUseTheLog) {
  StreamLog log(small());
  std::size_t seen = 1;
  log.set_drain_callback([&] { seen = log.held_bytes(); });
  log.append(0, bytes(200));
  log.acknowledge(1);
  EXPECT_EQ(seen, 0U);
}

TEST(StreamLog, FinishEndsWithoutError) {
  StreamLog log;
  log.append(0, bytes(1));
  EXPECT_FALSE(log.ended());
  log.finish();
  log.finish();
  EXPECT_TRUE(log.ended());
  EXPECT_FALSE(log.error().has_value());
  log.append(0, bytes(1));
  EXPECT_EQ(log.last_seq(), 1U) << "nothing follows the end";
}

TEST(StreamLog, FailureKeepsTheFirstReason) {
  StreamLog log;
  log.fail({ErrorCode::kEngineFailure, "first", {}, {}});
  log.fail({ErrorCode::kInternal, "second", {}, {}});
  ASSERT_TRUE(log.error().has_value());
  EXPECT_EQ(log.error()->message, "first");
}

TEST(StreamLog, FailureAfterFinishIsIgnored) {
  StreamLog log;
  log.finish();
  log.fail({ErrorCode::kInternal, "late", {}, {}});
  EXPECT_FALSE(log.error().has_value());
}

TEST(StreamLog, NotifiesOnceWhenThePacketArrives) {
  StreamLog log;
  int called = 0;
  log.notify_when(2, [&] { ++called; });
  log.append(0, bytes(1));
  EXPECT_EQ(called, 0);
  log.append(0, bytes(1));
  EXPECT_EQ(called, 1);
  log.append(0, bytes(1));
  log.finish();
  EXPECT_EQ(called, 1);
}

TEST(StreamLog, NotifiesAtOnceWhenAlreadyThere) {
  StreamLog log;
  log.append(0, bytes(1));
  int called = 0;
  log.notify_when(1, [&] { ++called; });
  EXPECT_EQ(called, 1);
}

TEST(StreamLog, NotifiesAtEveryKindOfEnd) {
  for (int kind = 0; kind < 3; ++kind) {
    StreamLog log;
    int called = 0;
    log.notify_when(1, [&] { ++called; });
    if (kind == 0) log.finish();
    if (kind == 1) log.fail({});
    if (kind == 2) log.close();
    EXPECT_EQ(called, 1) << kind;
    log.notify_when(9, [&] { ++called; });
    EXPECT_EQ(called, 2) << kind;
  }
}

TEST(StreamLog, WaiterMayWaitAgainFromItsCall) {
  StreamLog log;
  int called = 0;
  log.notify_when(1, [&] {
    ++called;
    log.notify_when(2, [&] { ++called; });
  });
  log.append(0, bytes(1));
  EXPECT_EQ(called, 1);
  log.append(0, bytes(1));
  EXPECT_EQ(called, 2);
}

TEST(StreamLog, ClosedLogHoldsNothingAndReleasesAPausedProducer) {
  StreamLog log(small());
  int drained = 0;
  log.set_drain_callback([&] { ++drained; });
  log.append(0, bytes(150));
  log.close();
  EXPECT_TRUE(log.closed());
  EXPECT_EQ(drained, 1);
  EXPECT_EQ(log.held_bytes(), 0U);
  EXPECT_TRUE(log.append(0, bytes(150)));
  EXPECT_EQ(log.held_bytes(), 0U);
  EXPECT_EQ(log.next(1), nullptr);
}

// One producer that obeys the water marks against one consumer: everything arrives, in order, and memory stays bounded.
TEST(StreamLog, ProducerAndConsumerOnTwoThreads) {
  constexpr std::uint32_t kPackets = 20000;
  StreamLog log({.high_water_bytes = 1000, .low_water_bytes = 500});
  std::atomic<bool> paused{false};
  std::size_t peak = 0;
  log.set_drain_callback([&] {
    paused = false;
    paused.notify_one();
  });
  std::thread producer([&] {
    for (std::uint32_t i = 1; i <= kPackets; ++i) {
      paused = true;  // before append: the drain may come between its return and the wait
      if (!log.append(i, bytes(1 + i % 64, static_cast<std::uint8_t>(i)))) paused.wait(true);
    }
    log.finish();
  });
  for (std::uint32_t seq = 1;; ++seq) {
    std::promise<void> there;
    log.notify_when(seq, [&] { there.set_value(); });
    there.get_future().wait();
    const auto packet = log.next(seq);
    if (packet == nullptr) {
      EXPECT_TRUE(log.ended());
      EXPECT_EQ(seq, kPackets + 1);
      break;
    }
    ASSERT_EQ(packet->first_sample, seq);
    ASSERT_EQ(packet->bytes, bytes(1 + seq % 64, static_cast<std::uint8_t>(seq)));
    peak = std::max(peak, log.held_bytes());
    log.acknowledge(seq);
  }
  producer.join();
  EXPECT_LE(peak, 1000U + 64U);
}

}  // namespace
}  // namespace tts::resume
