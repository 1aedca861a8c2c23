#pragma once
// Accepted utterances that wait to be let in, sorted by what a slot would do for them.

#include <deque>
#include <span>
#include <vector>

#include "admission.h"
#include "row.h"
#include "utterance.h"

namespace tts::scheduling {

// Utterances that were let in.
struct LetIn {
  std::span<const Row> in_slots, parked;

  bool has(std::uint64_t listener) const noexcept;  // one of this listener's that has not ended
};

// Belongs to the engine's thread. Who is paused waits aside until the pause ends, which any thread may say at any time: a slot would only
// be held.
class WaitingRoom {
 public:
  void enter(UtterancePtr utterance);
  bool empty() const noexcept { return newcomers_.empty() && later_.empty() && whole_.empty(); }
  std::size_t size() const noexcept { return newcomers_.size() + later_.size() + whole_.size(); }

  // `let_in` decides whether a later utterance is due.
  Waiting count(const LetIn& let_in) const noexcept;
  TimePoint oldest_submitted() const noexcept;  // max() = empty

  const Utterance& first_newcomer() const { return **first_of(newcomers_); }  // one must wait, as in the next
  UtterancePtr take(Next next, const LetIn& let_in);

  // Removes those for which `leaves(*utterance)` is true.
  template <class Leaves>
  void remove_if(Leaves leaves) {
    const auto pointee = [&](const UtterancePtr& utterance) { return leaves(*utterance); };
    std::erase_if(newcomers_, pointee);
    std::erase_if(later_, pointee);
    std::erase_if(whole_, pointee);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& utterance : newcomers_) visit(*utterance);
    for (const auto& utterance : later_) visit(*utterance);
    for (const auto& utterance : whole_) visit(*utterance);
  }

  template <class Visit>
  void for_each_due(const LetIn& let_in, Visit visit) const {
    for (const auto& utterance : later_) {
      if (!is_paused(utterance) && !let_in.has(utterance->request.listener)) visit(*utterance);
    }
  }

 private:
  static bool is_paused(const UtterancePtr& utterance) noexcept { return utterance->paused.load(std::memory_order_relaxed); }

  // The first that is not paused; of nothing but paused ones the first.
  static std::deque<UtterancePtr>::const_iterator first_of(const std::deque<UtterancePtr>& queue);

  std::deque<UtterancePtr> newcomers_, whole_;  // first come, first served
  std::vector<UtterancePtr> later_;             // of listeners who hear something already
};

}  // namespace tts::scheduling
