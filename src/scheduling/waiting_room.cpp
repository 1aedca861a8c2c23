#include "waiting_room.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tts::scheduling {
bool in_slot(std::uint64_t listener, std::span<const Row> rows) noexcept {
  return listener != 0 && std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
           return !row.gone && row.utterance->request.listener == listener;
         });
}

void WaitingRoom::enter(UtterancePtr utterance) {
  if (utterance->request.delivery == engine::Delivery::kWhole) {
    whole_.push_back(std::move(utterance));
  } else if (utterance->is_newcomer()) {
    newcomers_.push_back(std::move(utterance));
  } else {
    later_.push_back(std::move(utterance));
  }
}

Waiting WaitingRoom::count(std::span<const Row> rows) const noexcept {
  Waiting waiting;
  waiting.newcomers = static_cast<std::uint32_t>(newcomers_.size());
  waiting.whole = static_cast<std::uint32_t>(whole_.size());
  for_each_due(rows, [&](const Utterance&) { ++waiting.due; });
  waiting.ahead = static_cast<std::uint32_t>(later_.size()) - waiting.due;
  return waiting;
}

TimePoint WaitingRoom::oldest_submitted() const noexcept {
  TimePoint oldest = TimePoint::max();
  if (!newcomers_.empty()) oldest = std::min(oldest, newcomers_.front()->submitted_at);
  if (!later_.empty()) oldest = std::min(oldest, later_.front()->submitted_at);
  if (!whole_.empty()) oldest = std::min(oldest, whole_.front()->submitted_at);
  return oldest;
}

UtterancePtr WaitingRoom::take(Next next, std::span<const Row> rows) {
  const auto from_front = [](std::deque<UtterancePtr>& queue) {
    assert(!queue.empty());
    auto utterance = std::move(queue.front());
    queue.pop_front();
    return utterance;
  };
  if (next == Next::kNewcomer) return from_front(newcomers_);
  if (next == Next::kWhole) return from_front(whole_);
  const bool wanted_ahead = next == Next::kAhead;
  const auto found = std::find_if(later_.begin(), later_.end(), [&](const UtterancePtr& utterance) {
    return in_slot(utterance->request.listener, rows) == wanted_ahead;
  });
  assert(found != later_.end());
  auto utterance = std::move(*found);
  later_.erase(found);
  return utterance;
}

}  // namespace tts::scheduling
