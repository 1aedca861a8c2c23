// The scheduler against listeners with playback clocks, on a machine made of numbers: who runs dry, who waits and how long, who yields.
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulation.h"

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Lt;

using Listeners = std::vector<std::shared_ptr<Listener>>;

// A small voice: rows cost more than what they share. About 98 streams.
constexpr MachineCosts kSmall{.step = 0.4, .row = 0.12, .prompt_token = 0.03, .decode = 0.3, .decoder_step = 0.06};
constexpr std::uint32_t kSmallLookahead = 31;
// A large one: the pass over the weights costs more than its rows. About 20 streams.
constexpr MachineCosts kLarge{.step = 6, .row = 0.35, .prompt_token = 0.15, .decode = 1, .decoder_step = 0.2};
constexpr std::uint32_t kLargeLookahead = 52;
// The full size on two slow cores: even a decode of one step reads all weights of the sound networks. About 9 streams.
constexpr MachineCosts kSlow{.step = 9.3, .row = 0.85, .prompt_token = 0.3, .decode = 5, .decoder_step = 0.2};

SchedulerOptions with(std::uint32_t max_batch, LatencyMode latency = LatencyMode::kExact) {
  SchedulerOptions options;
  options.max_batch = max_batch;
  options.latency = latency;
  return options;
}

int gaps(const Listeners& listeners) {
  int count = 0;
  for (const auto& one : listeners) count += one->gaps();
  return count;
}

Duration silence(const Listeners& listeners) {
  Duration sum{0};
  for (const auto& one : listeners) sum += one->silence();
  return sum;
}

double milliseconds_of(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

double quantile_of_first_sound(const Listeners& listeners, double share) {
  std::vector<double> times;
  for (const auto& one : listeners) {
    if (one->first_sound()) times.push_back(milliseconds_of(*one->first_sound()));
  }
  std::sort(times.begin(), times.end());
  return times.empty() ? -1 : times[std::min(times.size() - 1, static_cast<std::size_t>(share * static_cast<double>(times.size())))];
}

struct Crowd {
  Listeners served;
  int refused = 0;
};

// Poisson arrivals of utterances of 2.5 to 7.5 s.
Crowd poisson(Simulation& simulation, double per_second, Duration time, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::exponential_distribution<double> pause(per_second);
  std::uniform_int_distribution<std::uint32_t> steps(120, 360);
  Crowd crowd;
  TimePoint next = simulation.clock.now();
  simulation.run_for(time, [&] {
    for (; simulation.clock.now() >= next; next += std::chrono::nanoseconds(static_cast<std::int64_t>(pause(random) * 1e9))) {
      if (auto one = simulation.ask({.steps = steps(random)})) {
        crowd.served.push_back(std::move(one));
      } else {
        ++crowd.refused;
      }
    }
  });
  return crowd;
}

class Machines : public testing::TestWithParam<std::tuple<MachineCosts, std::uint32_t>> {
 protected:
  MachineCosts costs() const { return std::get<0>(GetParam()); }
  std::uint32_t lookahead() const { return std::get<1>(GetParam()); }
};

TEST_P(Machines, KnowsWhatItCanServeAfterAWarmUp) {
  Simulation simulation(costs(), with(128), lookahead());
  EXPECT_EQ(simulation.loop.realtime_streams(), 0U);
  simulation.warm_up();
  const auto at_once = [&](double n) {  // time of n streams' steps in the time that one is heard, flushing and prompts apart
    return (costs().step + n * (costs().row + costs().decoder_step)) / 21.33;
  };
  const double streams = simulation.loop.realtime_streams();
  EXPECT_LT(at_once(streams), 0.9);
  EXPECT_GT(at_once(streams), 0.7) << streams;
}

TEST_P(Machines, NobodyRunsDryUpToCapacityAndBeyondItNewcomersWait) {
  Simulation simulation(costs(), with(128), lookahead());
  simulation.warm_up();
  Listeners listeners;
  for (std::uint32_t i = 0; i < simulation.loop.realtime_streams() + 25; ++i) listeners.push_back(simulation.ask({.steps = 1500}));
  simulation.run_for(seconds(15));
  EXPECT_EQ(gaps(listeners), 0) << milliseconds_of(silence(listeners));
  EXPECT_NEAR(simulation.loop.active(), simulation.loop.realtime_streams(), 2);
  EXPECT_GE(simulation.loop.active(), 15U);
  EXPECT_FALSE(listeners.back()->first_sound()) << "waits";
}

TEST_P(Machines, WhoHearsFasterCountsForMore) {
  Simulation simulation(costs(), with(128), lookahead());
  simulation.warm_up();
  const std::uint32_t streams = simulation.loop.realtime_streams();
  Listeners listeners;
  for (std::uint32_t i = 0; i < streams; ++i) listeners.push_back(simulation.ask({.steps = 3000, .pace = 2}));
  simulation.run_for(seconds(15));
  EXPECT_EQ(gaps(listeners), 0) << milliseconds_of(silence(listeners));
  EXPECT_LT(simulation.loop.active(), 0.65 * streams);
  EXPECT_GT(simulation.loop.active(), 0.2 * streams);
}

TEST_P(Machines, FastAndUsualListenersTogetherLeaveNoGaps) {
  Simulation simulation(costs(), with(128), lookahead());
  simulation.warm_up();
  const std::uint32_t streams = simulation.loop.realtime_streams();
  Listeners listeners;
  for (std::uint32_t i = 0; i < streams + 10; ++i) {
    listeners.push_back(simulation.ask({.steps = 2000, .pace = i % 4 == 0 ? 1.5 : i % 4 == 1 ? 0.75 : 1.0}));
    simulation.run_for(milliseconds(100));
  }
  simulation.run_for(seconds(10));
  EXPECT_EQ(gaps(listeners), 0) << milliseconds_of(silence(listeners));
  EXPECT_GT(simulation.loop.active(), 0.4 * streams);
}

TEST_P(Machines, RandomArrivalsAtAnyLoadLeaveNoGaps) {
  for (const double load : {0.3, 0.7, 0.95, 1.5}) {
    Simulation simulation(costs(), with(128), lookahead());
    simulation.warm_up();
    const double per_second = load * simulation.loop.realtime_streams() / 5.12;
    const auto crowd = poisson(simulation, per_second, seconds(12), static_cast<std::uint32_t>(load * 100));
    EXPECT_EQ(gaps(crowd.served), 0) << load << ": " << milliseconds_of(silence(crowd.served)) << " ms";
    EXPECT_GT(crowd.served.size(), 10U);
    EXPECT_THAT(simulation.control->breaches(), testing::IsEmpty());
    EXPECT_EQ(simulation.stood_still, 0);
  }
}

TEST_P(Machines, LowLatencySoundsEarlyWhileThereIsRoomAndNeverStarvesTheRest) {
  for (const double load : {0.2, 0.6, 0.9, 1.4}) {
    Simulation simulation(costs(), with(128, LatencyMode::kLow), lookahead());
    Simulation exact(costs(), with(128, LatencyMode::kExact), lookahead());
    simulation.warm_up();
    exact.warm_up();
    const double per_second = load * simulation.loop.realtime_streams() / 5.12;
    const auto seed = static_cast<std::uint32_t>(load * 100);
    const auto crowd = poisson(simulation, per_second, seconds(12), seed);
    const auto exact_crowd = poisson(exact, per_second, seconds(12), seed);
    EXPECT_EQ(gaps(crowd.served), 0) << load << ": " << milliseconds_of(silence(crowd.served)) << " ms";
    EXPECT_EQ(simulation.stood_still, 0);
    EXPECT_GE(crowd.served.size() + 5, exact_crowd.served.size()) << "early sound costs extra, but not the others' places";
    if (load > 0.3) continue;
    EXPECT_LT(quantile_of_first_sound(crowd.served, 0.5), 0.6 * quantile_of_first_sound(exact_crowd.served, 0.5)) << load;
  }
}

TEST(PlaybackSimulation, TheEstimatedWaitIsHonest) {
  Simulation simulation(kSmall, with(128), kSmallLookahead);
  simulation.warm_up();
  poisson(simulation, simulation.loop.realtime_streams() / 5.12, seconds(15));  // learns how long utterances stay
  struct Promise {
    std::shared_ptr<Listener> listener;
    Duration wait;
  };
  std::vector<Promise> promises;
  for (int i = 0; i < 150; ++i) {
    const Duration wait = simulation.mailbox.expected_wait();
    if (auto one = simulation.ask()) promises.push_back({std::move(one), wait});
  }
  simulation.run_for(seconds(20));
  double promised = 0, kept = 0;
  for (const auto& [listener, wait] : promises) {
    ASSERT_TRUE(listener->first_sound());
    promised += milliseconds_of(wait);
    kept += milliseconds_of(*listener->first_sound());
  }
  EXPECT_GT(promised, 0.6 * kept) << promised << " " << kept;
  EXPECT_LT(promised, 1.4 * kept) << promised << " " << kept;
}

TEST(PlaybackSimulation, WhoWouldWaitTooLongIsToldWhenToComeBack) {
  auto options = with(16);
  options.max_wait = milliseconds(2000);
  Simulation simulation(kLarge, options, kLargeLookahead);
  simulation.warm_up();
  Listeners listeners;
  while (auto one = simulation.ask()) listeners.push_back(std::move(one));
  ASSERT_TRUE(simulation.refusal.has_value());
  EXPECT_EQ(simulation.refusal->code, ErrorCode::kQueueFull);
  EXPECT_THAT(simulation.refusal->message, testing::HasSubstr("the wait would be about 2"));
  EXPECT_GT(listeners.size(), 18U);
  EXPECT_LT(listeners.size(), 60U);
  simulation.run_for(simulation.refusal->retry_after + seconds(4));
  EXPECT_NE(simulation.ask(), nullptr) << "the advice was good";
}

TEST(PlaybackSimulation, WhoIsFarAheadYieldsToANewcomer) {
  Simulation crowded(kSmall, with(64), kSmallLookahead), alone(kSmall, with(64), kSmallLookahead);
  crowded.warm_up();
  alone.warm_up();
  Listeners rich;
  for (int i = 0; i < 40; ++i) rich.push_back(crowded.ask({.steps = 2000}));
  crowded.run_for(seconds(4));
  for (const auto& one : rich) EXPECT_GT(one->left(), seconds(1));
  const auto newcomer = crowded.ask();
  const auto undisturbed = alone.ask();
  crowded.run_for(seconds(1));
  alone.run_for(seconds(1));
  EXPECT_LT(*newcomer->first_sound(), *undisturbed->first_sound() + milliseconds(15)) << "as if nobody else were there";
  EXPECT_EQ(gaps(rich), 0);
  EXPECT_FALSE(crowded.exports("tts_skipped_rows_total 0"));
}

TEST(PlaybackSimulation, ADownloadRunsAtFullSpeedAloneAndYieldsInCompany) {
  Simulation simulation(kSmall, with(64), kSmallLookahead);
  simulation.warm_up();
  const auto fast = simulation.ask({.steps = 2000});
  simulation.run_for(seconds(1));
  EXPECT_GT(fast->most_ahead(), seconds(20)) << "nobody else wants the machine";
  const auto ahead = fast->samples();
  Listeners others;
  for (int i = 0; i < 10; ++i) others.push_back(simulation.ask({.steps = 400}));
  simulation.run_for(milliseconds(200));
  EXPECT_LT(fast->samples() - ahead, 60000U) << "alone it would be 140,000";
  for (const auto& one : others) EXPECT_TRUE(one->first_sound());
}

TEST(PlaybackSimulation, FilesShareWhatStreamsLeaveAndDoNotStarve) {
  Simulation simulation(kSmall, with(128), kSmallLookahead);
  simulation.warm_up();
  Listeners streams, files;
  for (std::uint32_t i = 0; i < simulation.loop.realtime_streams() - 4; ++i) streams.push_back(simulation.ask({.steps = 2000}));
  for (int i = 0; i < 12; ++i) files.push_back(simulation.ask({.steps = 100, .delivery = engine::Delivery::kWhole}));
  simulation.run_for(seconds(30));
  EXPECT_EQ(gaps(streams), 0);
  for (const auto& one : files) EXPECT_TRUE(one->done());
}

TEST(PlaybackSimulation, AStreamDoesNotWaitBehindFiles) {
  Simulation simulation(kSmall, with(16), kSmallLookahead);
  simulation.warm_up();
  for (std::uint32_t i = 0; i < 40; ++i) simulation.ask({.steps = 100 + 20 * i, .delivery = engine::Delivery::kWhole});
  simulation.run_for(milliseconds(300));
  const auto stream = simulation.ask();
  simulation.run_for(milliseconds(600));
  EXPECT_TRUE(stream->first_sound()) << "the next slot was its own";
}

TEST(PlaybackSimulation, LowLatencyGrowsIntoExact) {
  Simulation simulation(kLarge, with(32, LatencyMode::kLow), kLargeLookahead);
  simulation.warm_up();
  const auto listener = simulation.ask({.steps = 600});
  simulation.run_for(seconds(20));
  EXPECT_TRUE(listener->done());
  EXPECT_EQ(listener->gaps(), 0);
  const auto& used = simulation.lookaheads;
  const auto first_exact = std::find(used.begin(), used.end(), kLargeLookahead);
  EXPECT_EQ(used.front(), SchedulerOptions{}.lookahead);
  EXPECT_GE(first_exact - used.begin(), 2);
  EXPECT_LE(first_exact - used.begin(), 6) << "each of them costs extra";
  EXPECT_THAT(std::vector(first_exact, used.end()), Each(kLargeLookahead)) << "and it stays there";
}

TEST(PlaybackSimulation, ExactMeansExactForWhoeverAsksForIt) {
  Simulation simulation(kLarge, with(32, LatencyMode::kLow), kLargeLookahead);
  simulation.warm_up();
  Listeners listeners;
  for (int i = 0; i < 8; ++i) listeners.push_back(simulation.ask({.latency = engine::Latency::kExact}));
  listeners.push_back(simulation.ask({.delivery = engine::Delivery::kWhole}));
  simulation.run_for(seconds(15));
  EXPECT_THAT(simulation.lookaheads, Each(kLargeLookahead));
}

TEST(PlaybackSimulation, AutoIsExactOnAFastMachineAndEarlyOnASlowOne) {
  Simulation fast(kSmall, with(32, LatencyMode::kAuto), kSmallLookahead), slow(kLarge, with(32, LatencyMode::kAuto), kLargeLookahead);
  for (auto* simulation : {&fast, &slow}) {
    simulation->warm_up();
    const auto listener = simulation->ask();
    simulation->run_for(seconds(10));
    EXPECT_LT(*listener->first_sound(), milliseconds(200));
    EXPECT_EQ(listener->gaps(), 0);
  }
  EXPECT_THAT(fast.lookaheads, Each(kSmallLookahead));
  EXPECT_THAT(slow.lookaheads, Contains(Lt(kLargeLookahead)));
}

TEST(PlaybackSimulation, JoinsTakeSmallerStepsWhenListenersAreShort) {
  MachineCosts dear = kLarge;
  dear.prompt_token = 1.0;  // 64 positions on one step would be 64 ms
  Simulation simulation(dear, with(32), kLargeLookahead);
  simulation.warm_up();
  Listeners listeners;
  for (int i = 0; i < 8; ++i) listeners.push_back(simulation.ask({.steps = 800}));
  simulation.run_for(seconds(3));
  for (int i = 0; i < 12; ++i) {
    simulation.ask({.prompt = 300, .steps = 50});
    simulation.run_for(milliseconds(500));
  }
  EXPECT_EQ(gaps(listeners), 0) << milliseconds_of(silence(listeners));
}

// A request of many sentences, as a sender handles it: the next one is submitted when the present one has sounded, what it gives is held
// until its turn, and the engine is told what the listener has.
class Talk {
 public:
  Talk(Simulation& simulation, std::uint64_t listener) : simulation_(simulation), listener_(listener) { current_ = submit({}).second; }

  void look() {
    const TimePoint now = simulation_.clock.now();
    hear(now);
    if (next_ && current_->done()) {
      current_ = std::exchange(next_, nullptr);
      heard_ = 0;
      ++sentences_;
      hear(now);
    }
    if (!next_ && current_->first_sound()) std::tie(next_id_, next_) = submit(clock_.runs_dry_at());
    if (next_) simulation_.mailbox.set_runs_dry_at(next_id_, clock_.runs_dry_at() + audio(next_->samples()));
  }

  int sentences() const noexcept { return sentences_; }
  Duration silence() const noexcept { return silence_; }

 private:
  static Duration audio(std::uint64_t samples) { return std::chrono::nanoseconds(samples * 1'000'000'000 / 24000); }

  std::pair<engine::UtteranceId, std::shared_ptr<Listener>> submit(TimePoint runs_dry_at) {
    auto who = simulation_.listener();
    const auto id = simulation_.submit({.steps = 150, .listener = listener_, .runs_dry_at = runs_dry_at}, who);
    EXPECT_TRUE(id.ok());
    return {*id, std::move(who)};
  }

  void hear(TimePoint now) {
    if (current_->samples() == heard_) return;
    if (clock_.started()) silence_ += std::max(Duration(0), -clock_.left(now));
    clock_.deliver(now, audio(current_->samples() - std::exchange(heard_, current_->samples())));
  }

  Simulation& simulation_;
  const std::uint64_t listener_;
  std::shared_ptr<Listener> current_, next_;
  engine::UtteranceId next_id_ = 0;
  PlaybackClock clock_;
  std::uint64_t heard_ = 0;
  Duration silence_{0};
  int sentences_ = 0;
};

TEST_P(Machines, TheSentencesOfOneListenerCountAsOneStreamAndFollowWithoutASilence) {
  Simulation simulation(costs(), with(128), lookahead());
  simulation.warm_up();
  const std::uint32_t most = simulation.loop.realtime_streams() - 2;
  std::vector<Talk> talks;
  const TimePoint begin = simulation.clock.now();
  simulation.run_for(seconds(30), [&] {
    if (talks.size() < most && simulation.clock.now() >= begin + talks.size() * seconds(4) / most) talks.emplace_back(simulation, talks.size() + 1);
    for (auto& talk : talks) talk.look();
  });
  int sentences = 0;
  Duration silence{0};
  for (const auto& talk : talks) {
    sentences += talk.sentences();
    silence += talk.silence();
  }
  EXPECT_EQ(talks.size(), most);
  EXPECT_GT(sentences, 6 * static_cast<int>(most));
  EXPECT_EQ(silence, Duration(0)) << milliseconds_of(silence);
  EXPECT_TRUE(simulation.exports("tts_underruns_total 0"));
}

TEST_P(Machines, SentencesFollowEachOtherThoughNewcomersKeepComing) {
  Simulation simulation(costs(), with(128), lookahead());
  simulation.warm_up();
  const std::uint32_t streams = simulation.loop.realtime_streams();
  std::vector<Talk> talks;
  Listeners others;
  std::mt19937 random(7);
  std::exponential_distribution<double> pause(streams / 5.12);  // as many as the machine can serve, beside the talks
  const TimePoint begin = simulation.clock.now();
  TimePoint next = begin + seconds(4);
  simulation.run_for(seconds(30), [&] {
    const TimePoint now = simulation.clock.now();
    if (talks.size() < streams / 2 && now >= begin + talks.size() * seconds(8) / streams) talks.emplace_back(simulation, talks.size() + 1);
    for (auto& talk : talks) talk.look();
    for (; now >= next; next += std::chrono::nanoseconds(static_cast<std::int64_t>(pause(random) * 1e9))) {
      if (auto one = simulation.ask()) others.push_back(std::move(one));
    }
  });
  Duration between{0};
  for (const auto& talk : talks) between += talk.silence();
  EXPECT_EQ(between, Duration(0)) << milliseconds_of(between);
  EXPECT_EQ(gaps(others), 0) << milliseconds_of(silence(others));
  EXPECT_GT(others.size(), streams);
}

TEST(PlaybackSimulation, AMachineThatBecomesSlowerAdmitsFewer) {
  Simulation simulation(kSmall, with(128), kSmallLookahead);
  simulation.warm_up();
  const auto before = simulation.loop.realtime_streams();
  MachineCosts slower = kSmall;
  slower.row *= 2;
  slower.decoder_step *= 2;
  simulation.set_costs(slower);
  const auto crowd = poisson(simulation, before / 5.12, seconds(30));
  EXPECT_LT(simulation.loop.realtime_streams(), 0.65 * before);
  EXPECT_GT(simulation.loop.realtime_streams(), 0.35 * before);
}

TEST_P(Machines, OneThatWasBusyWithSomethingElseIsTrustedAgain) {
  Simulation simulation(costs(), with(128), lookahead());
  simulation.warm_up();
  const auto before = simulation.loop.realtime_streams();
  poisson(simulation, before / 5.12, seconds(8));
  MachineCosts busy = costs();
  for (double* cost : {&busy.step, &busy.row, &busy.decode, &busy.decoder_step, &busy.prompt_token}) *cost *= 12;
  simulation.set_costs(busy);
  poisson(simulation, before / 5.12, seconds(8));
  EXPECT_LT(simulation.loop.realtime_streams(), before / 4);
  simulation.set_costs(costs());
  const auto crowd = poisson(simulation, before / 5.12, seconds(20));
  EXPECT_GT(simulation.loop.realtime_streams(), 0.8 * before);
  EXPECT_GT(simulation.loop.active(), 0.5 * before);
}

// Listeners that began at different times, where every decode has to read the sound networks' weights.
TEST(PlaybackSimulation, DearDecodesAreShared) {
  Simulation simulation(kSlow, with(32), kLargeLookahead);
  simulation.warm_up();
  const std::uint32_t streams = simulation.loop.realtime_streams();
  EXPECT_GE(streams, 6U);
  Listeners listeners;
  for (std::uint32_t i = 0; i < streams; ++i) {
    listeners.push_back(simulation.ask({.steps = 1500}));
    simulation.run_for(milliseconds(130));
  }
  simulation.run_for(seconds(5));
  simulation.lookaheads.clear();
  simulation.decodes = 0;
  simulation.run_for(seconds(15));
  EXPECT_EQ(simulation.loop.active(), streams);
  EXPECT_EQ(gaps(listeners), 0) << milliseconds_of(silence(listeners));
  EXPECT_GT(static_cast<double>(simulation.lookaheads.size()) / simulation.decodes, 0.7 * streams) << "streams in one decode";
}

// Keys and values of 40 rows fit into the caches; fetching a row's costs as much again as its step.
constexpr MachineCosts kCached{.step = 0.4, .row = 0.08, .prompt_token = 0.03, .decode = 0.3, .decoder_step = 0.06, .fetch = 0.08, .cached_rows = 40};

TEST(PlaybackSimulation, RowsTakeTurnsWhereTheCachesHoldOnlySome) {
  const auto steps_in_15_s = [](MachineCosts costs) {
    Simulation simulation(costs, with(128), kSmallLookahead);
    simulation.warm_up();
    Listeners files;
    for (int i = 0; i < 20; ++i) files.push_back(simulation.ask({.steps = 1900, .delivery = engine::Delivery::kWhole}));
    simulation.run_for(seconds(1));  // how 20 rows do is known before there are more
    for (int i = 0; i < 80; ++i) files.push_back(simulation.ask({.steps = 1900, .delivery = engine::Delivery::kWhole}));
    simulation.run_for(seconds(1));
    const auto before = simulation.steps;
    simulation.run_for(seconds(15));
    std::uint64_t least = ~0ULL, most = 0;
    for (const auto& file : files) {
      least = std::min(least, file->samples());
      most = std::max(most, file->samples());
    }
    EXPECT_EQ(simulation.loop.active(), 100U);
    EXPECT_GT(least, most / 2) << "everybody has a turn";
    return static_cast<double>(simulation.steps - before);
  };
  MachineCosts never = kCached;
  never.cached_rows = 0;
  EXPECT_GT(steps_in_15_s(kCached), 1.35 * steps_in_15_s(never));
}

TEST(PlaybackSimulation, TurnsLeaveNoGaps) {
  Simulation simulation(kCached, with(128), kSmallLookahead);
  simulation.warm_up();
  Listeners listeners;
  for (int i = 0; i < 90; ++i) {
    listeners.push_back(simulation.ask({.steps = 1500}));
    simulation.run_for(milliseconds(50));
  }
  simulation.run_for(seconds(8));
  EXPECT_GE(simulation.loop.active(), 80U);
  EXPECT_EQ(gaps(listeners), 0) << milliseconds_of(silence(listeners));
}

// Somebody whose link takes less sound than is spoken: the sender holds what has not left, and pauses the engine while that is too much.
class SlowReader {
 public:
  static constexpr double kHigh = 2, kLow = 1;  // seconds of sound held

  // pace: seconds of sound taken in a second.
  SlowReader(Simulation& simulation, double pace, std::uint32_t steps = 600)
      : simulation_(simulation),
        pace_(pace),
        listener_(simulation.ask({.steps = steps})),
        id_(simulation.last_id),
        looked_(simulation.clock.now()) {}

  void look() {
    const TimePoint now = simulation_.clock.now();
    const double made = static_cast<double>(listener_->samples()) / 24000;
    taken_ = std::min(made, taken_ + pace_ * std::chrono::duration<double>(now - std::exchange(looked_, now)).count());
    const double held = made - taken_;
    if (!paused_ && held > kHigh) set_paused(true);
    if (paused_ && held <= kLow) set_paused(false);
  }

  void set_pace(double pace) { pace_ = pace; }
  bool paused() const noexcept { return paused_; }
  double taken() const noexcept { return taken_; }
  const Listener& listener() const noexcept { return *listener_; }

 private:
  void set_paused(bool paused) {
    paused_ = paused;
    simulation_.set_paused(id_, paused);
  }

  Simulation& simulation_;
  double pace_;
  std::shared_ptr<Listener> listener_;
  engine::UtteranceId id_;
  TimePoint looked_;
  double taken_ = 0;
  bool paused_ = false;
};

struct NoticedBy {
  double median_ms = 0, p95_ms = 0;
  int gaps = 0, refused = 0;
  std::size_t served = 0;
};

NoticedBy noticed(const Crowd& crowd) {
  return {.median_ms = quantile_of_first_sound(crowd.served, 0.5),
          .p95_ms = quantile_of_first_sound(crowd.served, 0.95),
          .gaps = gaps(crowd.served),
          .refused = crowd.refused,
          .served = crowd.served.size()};
}

TEST(PlaybackSimulation, MoreSlowReadersThanSlotsAndOthersNoticeNothing) {
  constexpr std::uint32_t kSlots = 32, kReaders = 100;
  Simulation crowded(kSmall, with(kSlots), kSmallLookahead), alone(kSmall, with(kSlots), kSmallLookahead);
  crowded.warm_up();
  alone.warm_up();
  std::vector<SlowReader> slow;
  const TimePoint begin = crowded.clock.now();
  const auto look_at_slow = [&] {
    if (slow.size() < kReaders && crowded.clock.now() >= begin + slow.size() * milliseconds(200)) slow.emplace_back(crowded, 0);
    for (auto& one : slow) one.look();
  };
  crowded.run_for(seconds(22), look_at_slow);
  EXPECT_EQ(slow.size(), kReaders);
  EXPECT_TRUE(std::all_of(slow.begin(), slow.end(), [](const SlowReader& one) { return one.paused(); }));
  EXPECT_EQ(crowded.loop.active() + crowded.loop.parked(), kReaders);
  EXPECT_EQ(crowded.loop.active(), kSlots) << "nobody waits";

  const double per_second = 0.5 * alone.loop.realtime_streams() / 5.12;
  const auto others = noticed(poisson(crowded, per_second, seconds(20))), undisturbed = noticed(poisson(alone, per_second, seconds(20)));
  EXPECT_GT(others.served, 50U);
  EXPECT_NEAR(static_cast<double>(others.served), static_cast<double>(undisturbed.served), 1);
  EXPECT_EQ(others.gaps, 0);
  EXPECT_EQ(others.refused, 0);
  EXPECT_LT(others.median_ms, undisturbed.median_ms + 3);
  EXPECT_LT(others.p95_ms, undisturbed.p95_ms + 10);

  for (auto& one : slow) one.set_pace(1);
  crowded.run_for(seconds(30), [&] {
    for (auto& one : slow) one.look();
  });
  for (const auto& one : slow) {
    EXPECT_TRUE(one.listener().done());
    EXPECT_EQ(one.listener().samples(), 600U * 512 - 256);
  }
  EXPECT_EQ(crowded.loop.parked(), 0U);
  EXPECT_EQ(crowded.control->parked, 0U);
  EXPECT_THAT(crowded.control->breaches(), testing::IsEmpty());
}

// They take a little all the time, so that each comes back for more every few seconds.
TEST(PlaybackSimulation, SlowReadersWhoComeAndGoDisturbNobody) {
  constexpr std::uint32_t kReaders = 100;
  Simulation simulation(kSmall, with(32), kSmallLookahead);
  simulation.warm_up();
  std::vector<SlowReader> slow;
  Listeners others;
  std::mt19937 random(3);
  std::exponential_distribution<double> pause(2.0);
  const TimePoint begin = simulation.clock.now();
  TimePoint next = begin + seconds(22);
  simulation.run_for(seconds(60), [&] {
    const TimePoint now = simulation.clock.now();
    if (slow.size() < kReaders && now >= begin + slow.size() * milliseconds(200)) slow.emplace_back(simulation, 0.1, 1900);
    for (auto& one : slow) one.look();
    for (; now >= next; next += std::chrono::nanoseconds(static_cast<std::int64_t>(pause(random) * 1e9))) {
      others.push_back(simulation.ask());
    }
  });
  ASSERT_THAT(others, Each(testing::NotNull())) << "nobody is refused";
  EXPECT_GT(others.size(), 50U);
  EXPECT_EQ(gaps(others), 0) << milliseconds_of(silence(others));
  EXPECT_LT(quantile_of_first_sound(others, 0.95), 300);
  for (const auto& one : slow) EXPECT_GT(one.taken(), 0.1 * 35) << "they have what their links carry";
  EXPECT_FALSE(simulation.exports("tts_unparked_total 0"));
  EXPECT_THAT(simulation.control->breaches(), testing::IsEmpty());
}

TEST(PlaybackSimulation, WhoComesBackWaitsForOneSlotAtMost) {
  Simulation simulation(kSmall, with(4), kSmallLookahead);
  simulation.warm_up();
  SlowReader slow(simulation, 0);
  simulation.run_for(milliseconds(2500), [&] { slow.look(); });
  ASSERT_TRUE(slow.paused());
  Listeners others, newcomers;
  for (std::uint32_t i = 0; i < 4; ++i) others.push_back(simulation.ask({.steps = 400 + 400 * i}));
  simulation.run_for(milliseconds(50));
  ASSERT_EQ(simulation.loop.parked(), 1U);
  for (int i = 0; i < 3; ++i) newcomers.push_back(simulation.ask());
  slow.set_pace(100);  // the link is back, and takes all there is
  const auto held = slow.listener().samples();
  while (!others[0]->done()) {
    simulation.run_for(milliseconds(1), [&] { slow.look(); });
    EXPECT_EQ(slow.listener().samples(), held);
  }
  simulation.run_for(milliseconds(40), [&] { slow.look(); });
  EXPECT_GT(slow.listener().samples(), held);
  for (const auto& one : newcomers) EXPECT_FALSE(one->first_sound()) << "they waited longer, but they are not heard yet";
}

TEST_P(Machines, WhoPausesLeavesTheMachineToOthers) {
  Simulation simulation(costs(), with(256), lookahead());
  simulation.warm_up();
  const std::uint32_t streams = simulation.loop.realtime_streams();
  std::map<engine::UtteranceId, std::shared_ptr<Listener>> all;
  for (std::uint32_t i = 0; i < streams + 20; ++i) {
    const auto one = simulation.ask({.steps = 1900});
    all[simulation.last_id] = one;
  }
  simulation.run_for(seconds(8));
  Listeners others;
  for (const auto& [id, one] : all) {
    if (one->first_sound()) {
      simulation.set_paused(id, true);
    } else {
      others.push_back(one);
    }
  }
  EXPECT_GE(others.size(), 4U) << "kept out by those who are heard";
  while (others.size() < streams) {
    others.push_back(simulation.ask({.steps = 400}));
    simulation.run_for(milliseconds(100));
  }
  simulation.run_for(seconds(3));
  EXPECT_EQ(gaps(others), 0) << milliseconds_of(silence(others));
  for (const auto& one : others) EXPECT_TRUE(one->first_sound());
  EXPECT_EQ(simulation.loop.parked(), 0U) << "there are slots for all";
}

INSTANTIATE_TEST_SUITE_P(Costs, Machines, testing::Values(std::tuple(kSmall, kSmallLookahead), std::tuple(kLarge, kLargeLookahead)));

}  // namespace
}  // namespace tts::scheduling
