#include "waiting_room.h"

#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

UtterancePtr utterance(engine::UtteranceId id, std::uint64_t listener, bool heard, engine::Delivery delivery = engine::Delivery::kStreamed) {
  auto made = std::make_shared<Utterance>();
  made->id = id;
  made->submitted_at = TimePoint(std::chrono::seconds(100 - id));
  made->request.listener = listener;
  made->request.delivery = delivery;
  if (heard) made->request.runs_dry_at = TimePoint(std::chrono::seconds(1));
  return made;
}

std::vector<Row> in_slots(const std::vector<UtterancePtr>& utterances) {
  std::vector<Row> rows(utterances.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].utterance = utterances[i];
  return rows;
}

TEST(WaitingRoom, SortsByWhatASlotWouldDo) {
  WaitingRoom room;
  EXPECT_TRUE(room.empty());
  EXPECT_EQ(room.oldest_submitted(), TimePoint::max());
  room.enter(utterance(1, 7, false));
  room.enter(utterance(2, 8, true));
  room.enter(utterance(3, 9, true));
  room.enter(utterance(4, 0, true));
  room.enter(utterance(5, 9, true, engine::Delivery::kWhole));
  const auto rows = in_slots({utterance(90, 8, false), utterance(91, 0, false)});
  const LetIn let_in{.in_slots = rows, .parked = {}};
  const auto waiting = room.count(let_in);
  EXPECT_EQ(waiting.newcomers, 1U);
  EXPECT_EQ(waiting.ahead, 1U) << "the listener's earlier one is in a slot";
  EXPECT_EQ(waiting.due, 2U) << "listener 0 is nobody in particular";
  EXPECT_EQ(waiting.whole, 1U);
  std::vector<engine::UtteranceId> due;
  room.for_each_due(let_in, [&](const Utterance& one) { due.push_back(one.id); });
  EXPECT_EQ(due, (std::vector<engine::UtteranceId>{3, 4}));
  EXPECT_EQ(room.first_newcomer().id, 1U);
  EXPECT_EQ(room.size(), 5U);
  EXPECT_EQ(room.oldest_submitted(), TimePoint(std::chrono::seconds(95)));
  EXPECT_EQ(room.take(Next::kAhead, let_in)->id, 2U);
  EXPECT_EQ(room.take(Next::kDue, let_in)->id, 3U);
  EXPECT_EQ(room.take(Next::kDue, let_in)->id, 4U);
  EXPECT_EQ(room.take(Next::kNewcomer, let_in)->id, 1U);
  EXPECT_EQ(room.take(Next::kWhole, let_in)->id, 5U);
  EXPECT_TRUE(room.empty());
}

TEST(WaitingRoom, FirstComeFirstServed) {
  WaitingRoom room;
  for (engine::UtteranceId id = 1; id <= 3; ++id) room.enter(utterance(id, 0, false));
  for (engine::UtteranceId id = 1; id <= 3; ++id) EXPECT_EQ(room.take(Next::kNewcomer, {})->id, id);
}

TEST(WaitingRoom, ARowThatHasGoneLeavesItsListenerDue) {
  WaitingRoom room;
  room.enter(utterance(1, 8, true));
  auto rows = in_slots({utterance(90, 8, false)});
  const LetIn let_in{.in_slots = rows, .parked = {}};
  EXPECT_EQ(room.count(let_in).ahead, 1U);
  rows[0].gone = true;
  EXPECT_EQ(room.count(let_in).due, 1U);
}

TEST(WaitingRoom, WhatFollowsAParkedOneIsNotDue) {
  WaitingRoom room;
  room.enter(utterance(1, 8, true));
  const auto rows = in_slots({utterance(90, 8, false)});
  const LetIn let_in{.in_slots = {}, .parked = rows};
  EXPECT_EQ(room.count(let_in).ahead, 1U);
  EXPECT_EQ(room.count(let_in).due, 0U);
  EXPECT_EQ(room.take(Next::kAhead, let_in)->id, 1U);
}

TEST(WaitingRoom, WhoIsPausedIsPassedOver) {
  WaitingRoom room;
  std::vector<UtterancePtr> paused;
  for (engine::UtteranceId id = 1; id <= 8; ++id) {
    const auto one = utterance(id, 10 + id, id % 4 >= 2, id > 4 ? engine::Delivery::kWhole : engine::Delivery::kStreamed);
    room.enter(one);
    if (id % 2 == 1) paused.push_back(one);
  }
  for (const auto& one : paused) one->paused = true;
  EXPECT_EQ(room.size(), 8U);
  EXPECT_EQ(room.count({}).newcomers, 1U);
  EXPECT_EQ(room.count({}).due, 1U);
  EXPECT_EQ(room.count({}).whole, 2U);
  EXPECT_EQ(room.first_newcomer().id, 4U);
  int due = 0;
  room.for_each_due({}, [&](const Utterance&) { ++due; });
  EXPECT_EQ(due, 1);
  EXPECT_EQ(room.take(Next::kNewcomer, {})->id, 4U);
  EXPECT_EQ(room.take(Next::kDue, {})->id, 2U);
  EXPECT_EQ(room.take(Next::kWhole, {})->id, 6U);
  EXPECT_EQ(room.count({}).all(), 1U);
  for (const auto& one : paused) one->paused = false;
  EXPECT_EQ(room.take(Next::kNewcomer, {})->id, 1U);
  EXPECT_EQ(room.take(Next::kDue, {})->id, 3U);
  EXPECT_EQ(room.take(Next::kWhole, {})->id, 5U);
}

// A pause may come from any thread between the count and the choice.
TEST(WaitingRoom, WhoWasPausedSinceTheCountIsTakenForWantOfAnother) {
  WaitingRoom room;
  const auto newcomer = utterance(1, 7, false), due = utterance(2, 8, true);
  for (const auto& one : {newcomer, due}) {
    room.enter(one);
    one->paused = true;
  }
  EXPECT_EQ(room.first_newcomer().id, 1U);
  EXPECT_EQ(room.take(Next::kNewcomer, {})->id, 1U);
  EXPECT_EQ(room.take(Next::kDue, {})->id, 2U);
}

TEST(WaitingRoom, AnyoneMayLeave) {
  WaitingRoom room;
  for (engine::UtteranceId id = 1; id <= 6; ++id) {
    room.enter(utterance(id, id, id % 2 == 0, id > 4 ? engine::Delivery::kWhole : engine::Delivery::kStreamed));
  }
  room.remove_if([](const Utterance& one) { return one.id != 4; });
  EXPECT_EQ(room.size(), 1U);
  std::size_t seen = 0;
  room.for_each([&](const Utterance& one) { seen += one.id; });
  EXPECT_EQ(seen, 4U);
}

}  // namespace
}  // namespace tts::scheduling
