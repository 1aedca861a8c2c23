#pragma once
// Accepted utterances without a slot, sorted by what a slot would do for them.

#include <deque>
#include <span>
#include <vector>

#include "admission.h"
#include "row.h"
#include "utterance.h"

namespace tts::scheduling {

// True when an utterance of this listener is in a slot.
bool in_slot(std::uint64_t listener, std::span<const Row> rows) noexcept;

// Belongs to the engine's thread.
class WaitingRoom {
 public:
  void enter(UtterancePtr utterance);
  bool empty() const noexcept { return newcomers_.empty() && later_.empty() && whole_.empty(); }
  std::size_t size() const noexcept { return newcomers_.size() + later_.size() + whole_.size(); }

  // `rows`: those in slots now, which decide whether a later utterance is due.
  Waiting count(std::span<const Row> rows) const noexcept;
  TimePoint oldest_submitted() const noexcept;  // max() = empty

  const Utterance& first_newcomer() const { return *newcomers_.front(); }  // one must wait, as in the next
  UtterancePtr take(Next next, std::span<const Row> rows);

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
  void for_each_due(std::span<const Row> rows, Visit visit) const {
    for (const auto& utterance : later_) {
      if (!in_slot(utterance->request.listener, rows)) visit(*utterance);
    }
  }

 private:
  std::deque<UtterancePtr> newcomers_, whole_;  // first come, first served
  std::vector<UtterancePtr> later_;             // of listeners who hear something already
};

}  // namespace tts::scheduling
