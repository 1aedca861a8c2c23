#pragma once
// Text that comes piece by piece, given out as soon as it can be spoken.

#include <cstddef>
#include <string>
#include <string_view>

#include "tts/base/clock.h"

namespace tts::text {

// Not thread-safe. What the take functions return is always the start of what is held: all pieces together are the input, nothing is lost
// or repeated.
//
// Pieces end where sentences end, so that a front end finds in them the sentences it would find in the whole text. They may differ where a
// sentence's end is only seen with what stands on its other side: closing marks that come after a full-width stop begin the next piece;
// what begins a piece is read as if it began the text: a number followed by ". " as that of a list's item, letters as an abbreviation or
// an address whatever dots or quotes they stuck to; short sentences are grouped within a piece; and the language of a number without words
// beside it is that of its piece.
class IncrementalText {
 public:
  // max_delay: how long text may be held before take_due() gives it out without a sentence's end; 0 = for ever.
  explicit IncrementalText(Duration max_delay) noexcept : max_delay_(max_delay) {}

  void append(std::string_view text, TimePoint now);  // valid UTF-8

  // Up to the last sentence's end that no later text can move, with the white space behind it; empty = there is none. A full-width stop
  // and a line end are certain at once, Latin . ! ? when a character other than white space follows.
  std::string take_certain(TimePoint now);

  // Once due_at() has passed: up to the last clause, else the last word, else everything.
  std::string take_due(TimePoint now);

  std::string take_all();

  // When what is held will have been held for max_delay: since its first visible character came, or since the last piece was taken;
  // TimePoint::max() = never.
  TimePoint due_at() const noexcept;

  bool empty() const noexcept { return held_.empty(); }

 private:
  std::string take(std::size_t bytes, TimePoint now);
  void look_at(std::string_view added, TimePoint now);

  const Duration max_delay_;
  std::string held_;
  bool may_end_ = false;  // there is a stop or a line end in it
  bool visible_ = false;  // there is more than white space in it
  TimePoint since_{};     // of due_at(), while visible_
};

}  // namespace tts::text
