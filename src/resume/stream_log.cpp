#include "tts/resume/stream_log.h"

#include <deque>
#include <mutex>
#include <utility>

namespace tts::resume {

struct StreamLog::State {
  struct Waiter {
    std::uint32_t seq = 0;
    std::function<void()> ready;
  };
  using Waiters = std::vector<Waiter>;

  explicit State(StreamLogOptions limits) : options(limits) {}

  // What a waiter waits for can no longer change.
  bool settled(std::uint32_t seq) const { return seq <= last_seq || ended || closed; }

  Waiters take_settled() {
    Waiters settled_now;
    std::erase_if(waiters, [&](Waiter& waiter) {
      if (!settled(waiter.seq)) return false;
      settled_now.push_back(std::move(waiter));
      return true;
    });
    return settled_now;
  }

  // The drain callback when the producer was told to pause and need not any more.
  std::function<void()> take_drain() {
    if (!above_high_water || (held_bytes >= options.low_water_bytes && !closed)) return {};
    above_high_water = false;
    return drained;
  }

  const StreamLogOptions options;
  mutable std::mutex mutex;
  std::deque<std::shared_ptr<const Packet>> held;  // consecutive numbers, the last is last_seq
  std::uint32_t last_seq = 0;
  std::size_t held_bytes = 0;
  bool above_high_water = false;
  bool ended = false;
  bool closed = false;
  std::optional<Error> error;
  std::function<void()> drained;
  Waiters waiters;
};

namespace {

std::size_t size_of(const Packet& packet) { return packet.bytes.size() + packet.marks.size() * sizeof(Mark); }

void call_all(auto waiters) {
  for (auto& waiter : waiters) waiter.ready();
}

}  // namespace

StreamLog::StreamLog(StreamLogOptions options) : state_(std::make_unique<State>(options)) {}
StreamLog::~StreamLog() = default;

bool StreamLog::append(std::uint64_t first_sample, std::vector<std::uint8_t> bytes, std::vector<Mark> marks) {
  State::Waiters ready;
  bool below = true;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->ended || state_->closed) return true;
    auto packet = std::make_shared<Packet>();
    packet->seq = ++state_->last_seq;
    packet->first_sample = first_sample;
    packet->marks = std::move(marks);
    packet->bytes = std::move(bytes);
    state_->held_bytes += size_of(*packet);
    state_->held.push_back(std::move(packet));
    below = state_->held_bytes < state_->options.high_water_bytes;
    if (!below) state_->above_high_water = true;
    ready = state_->take_settled();
  }
  call_all(std::move(ready));
  return below;
}

void StreamLog::finish() {
  State::Waiters ready;
  {
    const std::lock_guard lock(state_->mutex);
    state_->ended = true;
    ready = state_->take_settled();
  }
  call_all(std::move(ready));
}

void StreamLog::fail(Error error) {
  State::Waiters ready;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->ended) return;
    state_->ended = true;
    state_->error = std::move(error);
    ready = state_->take_settled();
  }
  call_all(std::move(ready));
}

void StreamLog::set_drain_callback(std::function<void()> below_low_water) {
  const std::lock_guard lock(state_->mutex);
  state_->drained = std::move(below_low_water);
}

std::shared_ptr<const Packet> StreamLog::next(std::uint32_t seq) {
  const std::lock_guard lock(state_->mutex);
  if (seq > state_->last_seq) return nullptr;
  const std::size_t from_end = state_->last_seq - seq;  // 0 = the newest
  const std::size_t count = state_->held.size();
  return from_end < count ? state_->held[count - 1 - from_end] : nullptr;
}

void StreamLog::acknowledge(std::uint32_t seq) {
  std::function<void()> drained;
  {
    const std::lock_guard lock(state_->mutex);
    while (!state_->held.empty() && state_->held.front()->seq <= seq) {
      state_->held_bytes -= size_of(*state_->held.front());
      state_->held.pop_front();
    }
    drained = state_->take_drain();
  }
  if (drained) drained();
}

void StreamLog::close() {
  State::Waiters ready;
  std::function<void()> drained;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    state_->held.clear();
    state_->held_bytes = 0;
    ready = state_->take_settled();
    drained = state_->take_drain();
  }
  call_all(std::move(ready));
  if (drained) drained();
}

void StreamLog::notify_when(std::uint32_t seq, std::function<void()> ready) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->settled(seq)) {
      state_->waiters.push_back({seq, std::move(ready)});
      return;
    }
  }
  ready();
}

bool StreamLog::ended() const {
  const std::lock_guard lock(state_->mutex);
  return state_->ended;
}

std::optional<Error> StreamLog::error() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

std::uint32_t StreamLog::last_seq() const {
  const std::lock_guard lock(state_->mutex);
  return state_->last_seq;
}

std::size_t StreamLog::held_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->held_bytes;
}

std::optional<std::uint64_t> StreamLog::first_held_sample() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->held.empty()) return std::nullopt;
  return state_->held.front()->first_sample;
}

bool StreamLog::closed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->closed;
}

}  // namespace tts::resume
