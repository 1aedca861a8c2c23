#include "mailbox.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "support/recording_sink.h"

namespace tts::scheduling {
namespace {

class MailboxTest : public ::testing::Test {
 protected:
  Result<engine::UtteranceId> post() { return mailbox_.post({}, std::make_shared<test::RecordingSink>()); }
  std::vector<UtterancePtr> taken() {
    std::vector<UtterancePtr> arrivals;
    mailbox_.take(arrivals);
    return arrivals;
  }
  bool exports(const std::string& line) const { return metrics_.render().find(line) != std::string::npos; }

  test::ManualClock clock_;
  observability::Metrics metrics_;
  Mailbox mailbox_{3, std::chrono::milliseconds(10000), clock_, metrics_};
};

TEST_F(MailboxTest, HandsOverInOrderAndOnce) {
  const auto first = post();
  const auto second = post();
  const auto arrivals = taken();
  ASSERT_EQ(arrivals.size(), 2U);
  EXPECT_EQ(arrivals[0]->id, *first);
  EXPECT_EQ(arrivals[1]->id, *second);
  EXPECT_NE(*first, *second);
  EXPECT_NE(*first, 0U);
  EXPECT_TRUE(taken().empty());
}

TEST_F(MailboxTest, RefusesBeyondTheBoundWithAdvice) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(post().ok());
  EXPECT_EQ(post().error().retry_after, kUnknownAdvice);
  mailbox_.set_outlook({.free_places = 0, .interval = std::chrono::milliseconds(1234)});
  const auto refused = post();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kQueueFull);
  EXPECT_EQ(refused.error().retry_after, std::chrono::milliseconds(1234));
  EXPECT_EQ(refused.error().message, "the server is busy: 3 utterances are waiting; try again in 1.2 s");
  const auto arrivals = taken();
  EXPECT_FALSE(post().ok()) << "taken but without a slot still waits";
  mailbox_.leave_queue(*arrivals[0]);
  EXPECT_TRUE(post().ok());
}

TEST_F(MailboxTest, RefusesNewcomersWhoWouldWaitTooLong) {
  mailbox_.set_outlook({.free_places = 1, .interval = std::chrono::seconds(6)});
  EXPECT_TRUE(post().ok());
  EXPECT_EQ(mailbox_.expected_wait(), std::chrono::seconds(6));
  EXPECT_TRUE(post().ok());
  const auto refused = post();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kQueueFull);
  EXPECT_EQ(refused.error().retry_after, std::chrono::seconds(2));
  EXPECT_EQ(refused.error().message, "the server is busy: the wait would be about 12.0 s; try again in 2.0 s");
  engine::UtteranceRequest later;
  later.runs_dry_at = clock_.now();
  EXPECT_TRUE(mailbox_.post(later, std::make_shared<test::RecordingSink>()).ok()) << "its listener has been let in";
}

TEST_F(MailboxTest, StreamsDoNotWaitForFilesButFilesForBoth) {
  Mailbox mailbox{10, std::chrono::milliseconds(10000), clock_, metrics_};
  const auto post = [&](engine::Delivery delivery) {
    engine::UtteranceRequest request;
    request.delivery = delivery;
    return mailbox.post(std::move(request), std::make_shared<test::RecordingSink>());
  };
  mailbox.set_outlook({.free_places = 0, .interval = std::chrono::seconds(3)});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(post(engine::Delivery::kWhole).ok());
  EXPECT_EQ(post(engine::Delivery::kWhole).error().retry_after, std::chrono::seconds(2));
  EXPECT_EQ(mailbox.expected_wait(), std::chrono::seconds(3));
  EXPECT_TRUE(post(engine::Delivery::kStreamed).ok());
  EXPECT_EQ(mailbox.expected_wait(), std::chrono::seconds(6));
  std::vector<UtterancePtr> arrivals;
  mailbox.take(arrivals);
  for (const auto& utterance : arrivals) mailbox.leave_queue(*utterance);
  EXPECT_EQ(mailbox.expected_wait(), std::chrono::seconds(3));
  EXPECT_EQ(mailbox.queued(), 0U);
}

TEST_F(MailboxTest, WithoutALimitAnyWaitIsAccepted) {
  Mailbox patient{3, std::chrono::milliseconds(0), clock_, metrics_};
  patient.set_outlook({.free_places = 0, .interval = std::chrono::hours(1)});
  EXPECT_TRUE(patient.post({}, std::make_shared<test::RecordingSink>()).ok());
}

TEST_F(MailboxTest, ExportsTheQueueLength) {
  ASSERT_TRUE(post().ok());
  ASSERT_TRUE(post().ok());
  EXPECT_TRUE(exports("tts_queue_length 2"));
  for (const auto& utterance : taken()) mailbox_.leave_queue(*utterance);
  EXPECT_TRUE(exports("tts_queue_length 0"));
  EXPECT_EQ(mailbox_.queued(), 0U);
}

TEST_F(MailboxTest, RefusesAnUtteranceNobodyListensTo) { EXPECT_EQ(mailbox_.post({}, nullptr).error().code, ErrorCode::kInvalidArgument); }

TEST_F(MailboxTest, RefusesAPaceAtWhichNothingIsHeard) {
  for (const double pace : {0.0, -1.0, std::nan("")}) {
    engine::UtteranceRequest request;
    request.pace = pace;
    EXPECT_EQ(mailbox_.post(std::move(request), std::make_shared<test::RecordingSink>()).error().param, "pace") << pace;
  }
}

TEST_F(MailboxTest, FlagsReachTheUtteranceUntilItIsForgotten) {
  const auto id = *post();
  const auto utterance = taken().front();
  mailbox_.set_paused(id, true);
  EXPECT_TRUE(utterance->paused);
  mailbox_.set_paused(id, false);
  EXPECT_FALSE(utterance->paused);
  const TimePoint soon = clock_.now() + std::chrono::seconds(1);
  EXPECT_FALSE(utterance->take_report());
  mailbox_.set_runs_dry_at(id, soon);
  EXPECT_EQ(utterance->take_report(), soon);
  EXPECT_FALSE(utterance->take_report()) << "each report is taken once";
  mailbox_.forget(id);
  mailbox_.cancel(id);
  mailbox_.set_runs_dry_at(id, soon);
  mailbox_.cancel(999);
  mailbox_.set_paused(999, true);
  EXPECT_FALSE(utterance->cancelled);
  EXPECT_FALSE(utterance->take_report());
}

TEST_F(MailboxTest, StoppingRefusesButKeepsWhatWasAccepted) {
  ASSERT_TRUE(post().ok());
  EXPECT_FALSE(mailbox_.stopping());
  mailbox_.begin_stop(clock_.now() + std::chrono::seconds(5));
  EXPECT_TRUE(mailbox_.stopping());
  EXPECT_EQ(post().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(taken().size(), 1U);
}

TEST_F(MailboxTest, ASecondStopMayOnlyComeSooner) {
  const auto soon = clock_.now() + std::chrono::seconds(1);
  mailbox_.begin_stop(soon + std::chrono::seconds(9));
  mailbox_.begin_stop(soon);
  mailbox_.begin_stop(soon + std::chrono::seconds(9));
  EXPECT_EQ(mailbox_.cut_at(), soon);
}

TEST_F(MailboxTest, SleepReturnsForNewsAndForATimeInThePast) {
  ASSERT_TRUE(post().ok());
  mailbox_.sleep_until(TimePoint::max());  // would block without the news
  taken();
  mailbox_.sleep_until(clock_.now());
}

}  // namespace
}  // namespace tts::scheduling
