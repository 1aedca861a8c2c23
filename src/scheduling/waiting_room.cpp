#include "waiting_room.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tts::scheduling {

bool LetIn::has(std::uint64_t listener) const noexcept {
  const auto is_theirs = [&](const Row& row) { return !row.gone && row.utterance->request.listener == listener; };
  return listener != 0 &&
         (std::any_of(in_slots.begin(), in_slots.end(), is_theirs) || std::any_of(parked.begin(), parked.end(), is_theirs));
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

Waiting WaitingRoom::count(const LetIn& let_in) const noexcept {
  Waiting waiting;
  for (const UtterancePtr& utterance : newcomers_) waiting.newcomers += is_paused(utterance) ? 0 : 1;
  for (const UtterancePtr& utterance : whole_) waiting.whole += is_paused(utterance) ? 0 : 1;
  for (const UtterancePtr& utterance : later_) {
    if (is_paused(utterance)) continue;
    ++(let_in.has(utterance->request.listener) ? waiting.ahead : waiting.due);
  }
  return waiting;
}

TimePoint WaitingRoom::oldest_submitted() const noexcept {
  TimePoint oldest = TimePoint::max();
  if (!newcomers_.empty()) oldest = std::min(oldest, newcomers_.front()->submitted_at);
  if (!later_.empty()) oldest = std::min(oldest, later_.front()->submitted_at);
  if (!whole_.empty()) oldest = std::min(oldest, whole_.front()->submitted_at);
  return oldest;
}

std::deque<UtterancePtr>::const_iterator WaitingRoom::first_of(const std::deque<UtterancePtr>& queue) {
  assert(!queue.empty());
  const auto found = std::find_if_not(queue.begin(), queue.end(), is_paused);
  return found == queue.end() ? queue.begin() : found;
}

UtterancePtr WaitingRoom::take(Next next, const LetIn& let_in) {
  const auto from_queue = [](std::deque<UtterancePtr>& queue) {
    const auto first = first_of(queue);
    UtterancePtr utterance = *first;
    queue.erase(first);
    return utterance;
  };
  if (next == Next::kNewcomer) return from_queue(newcomers_);
  if (next == Next::kWhole) return from_queue(whole_);
  const bool wanted_ahead = next == Next::kAhead;
  const auto is_wanted = [&](const UtterancePtr& utterance) { return let_in.has(utterance->request.listener) == wanted_ahead; };
  auto found = std::find_if(later_.begin(), later_.end(),
                            [&](const UtterancePtr& utterance) { return !is_paused(utterance) && is_wanted(utterance); });
  if (found == later_.end()) found = std::find_if(later_.begin(), later_.end(), is_wanted);  // was paused since it was counted
  assert(found != later_.end());
  auto utterance = std::move(*found);
  later_.erase(found);
  return utterance;
}

}  // namespace tts::scheduling
