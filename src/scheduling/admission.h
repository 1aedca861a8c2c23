#pragma once
// Who gets the next slot, and when. What expired or was cancelled in the queue never takes one.

#include <chrono>
#include <cstdint>

#include "tts/base/clock.h"

namespace tts::scheduling {

// Utterances that wait, by what a slot would do for them. First come, first served within each.
struct Waiting {
  std::uint32_t due = 0;        // later ones of a listener whose earlier one has ended: silence is near
  std::uint32_t newcomers = 0;  // the first of their listener
  std::uint32_t ahead = 0;      // later ones of a listener whose earlier one still generates
  std::uint32_t whole = 0;      // nobody listens while they are made

  std::uint32_t all() const noexcept { return due + newcomers + ahead + whole; }
};

struct AdmissionState {
  Waiting waiting;
  std::uint32_t active = 0;        // slots taken by those who would not give them up to others
  std::uint32_t listeners = 0;     // heard from slots; utterances of one listener count once, those who pause not at all
  std::uint32_t whole = 0;         // slots taken by whole utterances that are not paused
  std::uint32_t whole_passed_over = 0;  // others admitted since a whole utterance waits
  bool listener_short = false;     // an admitted listener is about to run dry
  bool newcomer_fits = true;       // beside those who are heard faster than they speak, of whom the number alone says too little
  TimePoint oldest_submitted{};    // of those waiting
  TimePoint now{};
};

struct AdmissionRules {
  std::uint32_t max_batch = 1;
  std::uint32_t realtime_streams = 0;  // 0 = not known: slots are the only limit
  std::chrono::milliseconds batch_window{0};
};

enum class Next : std::uint8_t { kNobody, kDue, kNewcomer, kAhead, kWhole };

struct AdmissionDecision {
  Next next = Next::kNobody;
  TimePoint wait_until = TimePoint::max();  // nobody yet, but at this time there will be; max() = not waiting for a time
};

// One decision; to be asked again with the new state until the answer is kNobody.
//
// An idle engine waits batch_window after the oldest arrival for company, unless a full batch is there already: utterances that
// start together share every step. A running engine takes newcomers between steps, as long as all listeners stay at real time with
// them and nobody is about to run dry. Whoever has been let in goes on: the later utterances of a listener need a slot, not leave.
// Whole utterances take what is left; one of them may always run, and every fourth slot is theirs when they wait.
AdmissionDecision decide_admission(const AdmissionState& state, const AdmissionRules& rules) noexcept;

// Newcomers that would get a slot at once, were nobody waiting; negative = so many have to leave first.
std::int64_t free_places(const AdmissionState& state, const AdmissionRules& rules) noexcept;

}  // namespace tts::scheduling
