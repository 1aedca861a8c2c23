// A turn in which nobody comes or goes allocates nothing: counted by replacing the global allocation functions of this program.
#include <cstdlib>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "engine_loop.h"
#include "support/fake_engine.h"
#include "support/manual_clock.h"

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tts::scheduling {
namespace {

class CountingSink final : public engine::UtteranceSink {
 public:
  void on_pcm(std::span<const float> samples, bool) override { heard += samples.size(); }
  void on_done(const engine::UtteranceSummary&) override {}
  void on_error(const Error&) override {}
  std::size_t heard = 0;
};

TEST(Allocations, NoneInASteadyTurn) {
  SchedulerOptions options;
  options.batch_window = std::chrono::milliseconds(0);
  test::FakeEngine engine;
  const test::ManualClock clock;
  observability::Metrics metrics;
  Mailbox mailbox(options.max_queue, options.max_wait, clock, metrics);
  Progress progress({}, clock.now());
  EngineLoop loop(engine, options, clock, metrics, mailbox, progress);
  const auto sink = std::make_shared<CountingSink>();
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    engine::UtteranceRequest request;
    request.prompt.tokens.assign(500 + seed * 20, 7);
    request.prompt.stage = seed % 4 == 3 ? engine::Stage::kText : engine::Stage::kCode;
    request.sampling.seed = seed;
    ASSERT_TRUE(mailbox.post(std::move(request), sink).ok());
  }
  loop.turn();
  const std::size_t joining = allocations;
  EXPECT_GT(joining, 0U) << "the counter counts";
  for (int i = 0; i < 400; ++i) loop.turn();  // prompts, first chunks, steady chunks
  EXPECT_EQ(allocations - joining, 0U);
  EXPECT_GT(sink->heard, 24000U);
}

// Rows that pause, in slots and parked, and one whose pause has ended and for whom there is no slot.
TEST(Allocations, NoneWhileOthersAreParked) {
  SchedulerOptions options;
  options.batch_window = std::chrono::milliseconds(0);
  options.max_batch = 4;
  options.max_parked_mb = 3;  // of 1 MiB each
  test::FakeEngine engine;
  test::ManualClock clock;
  observability::Metrics metrics;
  Mailbox mailbox(options.max_queue, options.max_wait, clock, metrics);
  Progress progress({}, clock.now());
  EngineLoop loop(engine, options, clock, metrics, mailbox, progress);
  const auto sink = std::make_shared<CountingSink>();
  std::vector<engine::UtteranceId> ids;
  const auto submit = [&] {
    engine::UtteranceRequest request;
    request.prompt.tokens.assign(500, 7);
    ids.push_back(*mailbox.post(std::move(request), sink));
  };
  for (int i = 0; i < 4; ++i) submit();
  for (int i = 0; i < 20; ++i) loop.turn();
  for (const auto id : ids) mailbox.set_paused(id, true);
  loop.turn();
  clock.advance(options.park_after);
  for (int i = 0; i < 3; ++i) submit();
  loop.turn();
  ASSERT_EQ(loop.parked(), 3U);
  submit();  // waits: the cap is reached
  mailbox.set_paused(ids[0], false);  // changes places with the one that is paused in its slot
  loop.turn();
  mailbox.set_paused(ids[1], false);
  loop.turn();
  const std::size_t before = allocations;
  for (int i = 0; i < 200; ++i) loop.turn();
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_EQ(loop.parked(), 3U);
  EXPECT_EQ(loop.active(), 4U);
}

}  // namespace
}  // namespace tts::scheduling
