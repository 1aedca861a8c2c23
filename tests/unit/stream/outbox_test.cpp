#include "outbox.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tts::stream {
namespace {

Frame frame(std::uint16_t context, std::uint64_t first_sample, std::size_t bytes = 100) {
  auto packet = std::make_shared<resume::Packet>();
  packet->bytes.assign(bytes, static_cast<std::uint8_t>(first_sample));
  return {.context = context,
          .last = false,
          .piece = {.payload = {packet, 0, bytes}, .first_sample = first_sample, .end_sample = first_sample + 480},
          .audio = std::chrono::milliseconds(20)};
}

// "1", "2" and so on for frames by number, the text for messages.
std::string taken(Outbox& outbox) {
  std::string all;
  while (const auto* item = outbox.take()) {
    all += (all.empty() ? "" : " ") + (item->frame() != nullptr ? std::to_string(item->seq) : std::get<Message>(item->content).text);
  }
  return all;
}

TEST(Outbox, GivesThingsInOrderAndNumbersFrames) {
  Outbox outbox;
  EXPECT_TRUE(outbox.nothing_to_send());
  outbox.push(Message{.text = "a"});
  outbox.push(frame(1, 0));
  outbox.push(frame(2, 0));
  outbox.push(Message{.text = "b"});
  EXPECT_EQ(outbox.queued_audio(), std::chrono::milliseconds(40));
  EXPECT_GT(outbox.queued_bytes(), 200U);
  EXPECT_EQ(outbox.kept_bytes(), 0U);
  EXPECT_EQ(taken(outbox), "a 1 2 b");
  EXPECT_EQ(outbox.queued_bytes(), 0U);
  EXPECT_EQ(outbox.queued_audio(), Duration(0));
  EXPECT_GT(outbox.kept_bytes(), 200U);
  EXPECT_EQ(outbox.last_seq(), 2U);
}

TEST(Outbox, WhatIsAcknowledgedGoesWithTheMessagesBeforeIt) {
  Outbox outbox;
  outbox.push(Message{.text = "a"});
  for (int i = 0; i < 3; ++i) outbox.push(frame(1, 480 * i));
  outbox.push(Message{.text = "b"});
  taken(outbox);
  outbox.acknowledge(2);
  EXPECT_EQ(outbox.rewind(2)->from, 3U);
  EXPECT_EQ(taken(outbox), "3 b");
  outbox.acknowledge(99);
  outbox.rewind(3);
  EXPECT_EQ(taken(outbox), "b") << "it came after all frames: nobody has said that it arrived";
}

TEST(Outbox, AcknowledgingWhatWasNotSentDropsNothing) {
  Outbox outbox;
  outbox.push(frame(1, 0));
  outbox.acknowledge(5);
  EXPECT_EQ(taken(outbox), "1");
}

TEST(Outbox, RewindsToAnyFrameThatIsStillThere) {
  Outbox outbox;
  for (int i = 0; i < 4; ++i) outbox.push(frame(1, 480 * i));
  outbox.push(Message{.text = "m"});
  EXPECT_EQ(taken(outbox), "1 2 3 4 m");
  outbox.push(frame(1, 480 * 4));
  for (const std::uint32_t seq : {0U, 1U, 3U, 4U}) {
    const auto rewind = outbox.rewind(seq);
    ASSERT_TRUE(rewind);
    EXPECT_FALSE(rewind->gap);
    EXPECT_EQ(rewind->from, seq + 1);
  }
  EXPECT_EQ(taken(outbox), "m 5");
  EXPECT_EQ(outbox.rewind(1)->from, 2U);
  EXPECT_EQ(taken(outbox), "2 3 4 m 5") << "numbers stay";
  EXPECT_FALSE(outbox.rewind(6)) << "never sent";
}

TEST(Outbox, TellsOfAGap) {
  Outbox outbox;
  for (int i = 0; i < 5; ++i) outbox.push(frame(7, 480 * i));
  taken(outbox);
  outbox.acknowledge(3);
  const auto rewind = outbox.rewind(1);
  ASSERT_TRUE(rewind);
  EXPECT_TRUE(rewind->gap);
  EXPECT_EQ(rewind->from, 4U);
  EXPECT_EQ(rewind->first_sample, 480U * 3U);
  EXPECT_EQ(rewind->context, 7U);
  EXPECT_EQ(taken(outbox), "4 5");
}

TEST(Outbox, KeepsNoMoreThanItIsTold) {
  Outbox outbox;
  for (int i = 0; i < 10; ++i) outbox.push(frame(1, 480 * i, 1000));
  taken(outbox);
  outbox.keep_at_most(3500);
  EXPECT_LE(outbox.kept_bytes(), 3500U);
  EXPECT_GT(outbox.kept_bytes(), 2000U);
  const auto rewind = outbox.rewind(0);
  EXPECT_TRUE(rewind->gap);
  EXPECT_EQ(rewind->from, 8U);
  outbox.keep_at_most(0);
  EXPECT_EQ(taken(outbox), "8 9 10") << "what is to be sent again is not dropped";
  outbox.keep_at_most(0);
  EXPECT_EQ(outbox.kept_bytes(), 0U);
}

TEST(Outbox, ACancelDropsWhatWasNeverSentOfItsContextOnly) {
  Outbox outbox;
  outbox.push(frame(1, 0));
  outbox.push(frame(2, 0));
  ASSERT_NE(outbox.take(), nullptr);
  ASSERT_NE(outbox.take(), nullptr);
  outbox.push(frame(1, 480));
  outbox.push(Message{.text = "of 1", .context = 1});
  outbox.push(frame(2, 480));
  outbox.push(Message{.text = "of none"});
  outbox.drop_unsent(1);
  outbox.push_next(Message{.text = "cancelled"});
  EXPECT_EQ(taken(outbox), "cancelled 3 of none");
  EXPECT_EQ(outbox.queued_bytes(), 0U);
}

TEST(Outbox, AfterARewindACancelComesBehindWhatHasANumber) {
  Outbox outbox;
  for (int i = 0; i < 3; ++i) outbox.push(frame(1, 480 * i));
  taken(outbox);
  outbox.push(frame(1, 480 * 3));
  outbox.rewind(1);
  outbox.drop_unsent(1);
  outbox.push_next(Message{.text = "cancelled"});
  EXPECT_EQ(taken(outbox), "2 3 cancelled");
}

TEST(Outbox, KnowsTheAudioAfterAFrame) {
  Outbox outbox;
  for (int i = 0; i < 3; ++i) outbox.push(frame(1, 480 * i));
  outbox.push(frame(2, 0));
  taken(outbox);
  outbox.push(frame(1, 480 * 3));
  EXPECT_EQ(outbox.audio_after(1, 1), std::chrono::milliseconds(60));
  EXPECT_EQ(outbox.audio_after(1, 0), std::chrono::milliseconds(80));
  EXPECT_EQ(outbox.audio_after(4, 1), std::chrono::milliseconds(20));
}

// A client that loses its link again and again, beside one that never does.
TEST(Outbox, WhateverHappensNothingIsLostOrDoubled) {
  std::mt19937 random(3);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    Outbox outbox;
    std::vector<std::uint64_t> pushed, received;
    std::uint32_t last = 0;
    for (int step = 0; step < 300; ++step) {
      switch (below(6)) {
        case 0:
        case 1:
          pushed.push_back(pushed.size() * 480);
          outbox.push(frame(1, pushed.back(), 1 + below(50)));
          break;
        case 2: outbox.push(Message{.text = "m"}); break;
        case 3:
          for (unsigned n = below(4); n > 0; --n) {
            const auto* const item = outbox.take();
            if (item == nullptr || item->frame() == nullptr) continue;
            EXPECT_EQ(item->seq, last + 1);
            if (below(5) == 0) {  // the link breaks: this one and perhaps more never arrive
              while (below(3) != 0 && outbox.take() != nullptr) {
              }
              const auto rewind = outbox.rewind(last);
              ASSERT_TRUE(rewind);
              EXPECT_FALSE(rewind->gap);
              EXPECT_EQ(rewind->from, last + 1);
              break;
            }
            last = item->seq;
            received.push_back(item->frame()->piece.first_sample);
          }
          break;
        case 4:
          if (last > 0) outbox.acknowledge(last - below(std::min(last, 3U)));
          break;
        default: break;
      }
    }
    outbox.rewind(last);
    while (const auto* item = outbox.take()) {
      if (item->frame() != nullptr) received.push_back(item->frame()->piece.first_sample);
    }
    ASSERT_EQ(received, pushed);
    outbox.acknowledge(outbox.last_seq());
    outbox.keep_at_most(0);
    EXPECT_EQ(outbox.kept_bytes(), 0U);
    EXPECT_EQ(outbox.queued_bytes(), 0U);
  }
}

}  // namespace
}  // namespace tts::stream
