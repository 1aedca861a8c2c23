#pragma once
// Whose steps go through the decoder and vocoder now, and how far each sample looks ahead.

#include <cstdint>
#include <span>
#include <vector>

#include "cost_model.h"
#include "urgency.h"

namespace tts::scheduling {

struct DecodeRow {
  std::uint32_t pending = 0;  // generated steps not yet given to the decoder
  std::uint32_t unheard = 0;  // generated steps whose sound has not come out: pending and held back
  std::uint32_t chunk = 0;    // steps of sound the next piece should hold
  Urgency urgency = Urgency::kNow;
  bool whole = false;
  bool silent = false;           // its listener has heard nothing yet
  bool steady = false;           // past its ramp
  bool may_be_early = false;     // less than exact lookahead is acceptable rather than silence
  Duration left{0};              // what the listener still has to hear, unless silent
  bool ended = false;            // no more steps will come: flush
  bool runnable = true;          // neither paused, cancelled nor already flushed
};

struct DecodeRules {
  std::uint32_t max_pending = 0;
  std::uint32_t exact_lookahead = 0;
  std::uint32_t low_lookahead = 0;   // least lookahead of an early piece
  std::uint32_t least_chunk = 4;     // steps of sound worth a decode when the listener is short
  Duration reserve{0};               // what a listener should have left when its next sound comes
  Duration budget{Duration::max()};  // of one call; the first row comes whatever it takes
  bool slots_wanted = false;         // somebody waits for the slot of a row that has ended
};

// Whose steps to decode now.
struct DecodeChoice {
  std::uint32_t row = 0;
  std::uint32_t steps = 0;      // of its pending ones
  std::uint32_t lookahead = 0;  // engine::kExactLookahead or less
};

// Reused from turn to turn, so that planning does not allocate.
struct DecodePlan {
  std::vector<DecodeChoice> chosen;  // the neediest first
  bool more_are_short = false;       // rows that should not wait for another step did not fit into this call
  std::vector<std::uint32_t> order;  // scratch: rows by need
  std::vector<bool> short_of_sound;  // scratch: by row

  void reserve(std::size_t count);
};

// A row is due when its chunk can be made with exact lookahead, when the slot is full, or when it has ended. A full slot is emptied
// without a first sound: that must be a whole chunk, or the listener starts and stalls.
//
// A listener is short when no more than `reserve` would be left after the decodes of all who need theirs sooner: streams that began
// together run out together. The short get less than a chunk. Where early pieces are acceptable, a short row gives all it can: every
// early piece costs the same extra, and what it gives is the time in which steps gather for the next, until they suffice for the
// exact lookahead. Only an ended row is decoded without new steps.
//
// Rows past their ramp come along with a due one, with whatever they hold: one pass over the weights serves all, and from then on they
// are due together. But all streams wait while a decode runs, and its sound comes at its end: it ends before the neediest of its rows
// runs dry, the budget bounds it, and while some row is needed now, rows with plenty left wait.
void plan_decode(std::span<const DecodeRow> rows, const DecodeRules& rules, const CostModel& costs, DecodePlan& plan);

// Steps that a decode computes for a row: new ones, those flushed at the end and those computed ahead without being kept.
std::uint32_t decode_work(const DecodeRow& row, const DecodeChoice& choice, std::uint32_t exact_lookahead) noexcept;

}  // namespace tts::scheduling
