#pragma once
// How long a newcomer waits for a slot, and what a refused client is advised.

#include <chrono>
#include <cstdint>

#include "tts/base/clock.h"

namespace tts::scheduling {

// What the engine's thread last knew; plain data for whoever answers newcomers.
struct Outlook {
  std::int64_t free_places = 0;  // newcomers who would get a slot at once; negative = so many have to leave first
  Duration interval{0};          // between two places becoming free; zero = not known
};

inline constexpr std::chrono::milliseconds kUnknownAdvice{1000};
inline constexpr std::chrono::milliseconds kLeastAdvice{250};
inline constexpr std::chrono::milliseconds kMostAdvice{30000};

// Of the next newcomer when `waiting` wait already; zero when there is a place or nothing is known.
Duration expected_wait(const Outlook& outlook, std::uint32_t waiting) noexcept;

// For a newcomer refused because the queue is full: the time in which a quarter of it gets slots, soon enough to keep it filled, late
// enough not to be refused again. Because the wait exceeds max_wait: until it no longer would.
std::chrono::milliseconds advice_when_full(const Outlook& outlook, std::uint32_t waiting) noexcept;
std::chrono::milliseconds advice_when_long(Duration wait, std::chrono::milliseconds max_wait) noexcept;

// How many steps of the engine a listener usually keeps a place for, with all its utterances one after the other: those it takes part in
// and those it sits out. Not thread-safe.
class Residence {
 public:
  // An utterance has left, whatever the reason. `steps`: since it had its listener's place, so not those beside an earlier one.
  // first: its listener came with it.
  void left_after(std::uint64_t steps, bool first) noexcept;

  // Time between two departures when `rows` listeners share steps of that duration.
  Duration interval(Duration round, std::uint32_t rows) const noexcept;

 private:
  double steps_ = 200;  // about 4 s of sound, until something was seen
  double listeners_ = 1;
  bool seen_ = false;
};

}  // namespace tts::scheduling
