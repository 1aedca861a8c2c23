#pragma once
// How many bits a second of a context's Opus may have on its link as it is now.

#include <cstdint>
#include <optional>

#include "tts/base/clock.h"

namespace tts::stream {

// Down at once when the listener is about to run dry while audio waits to be sent, up a step when nothing has waited for a while.
// Not thread-safe.
class BitrateControl {
 public:
  explicit BitrateControl(TimePoint now) noexcept : changed_at_(now), calm_since_(now) {}

  std::uint32_t rate() const noexcept;  // bit/s

  struct Link {
    Duration waiting{0};  // audio that has not reached the client: here, and in the kernel
    Duration left{0};     // of what has, not yet heard; negative = the listener has run dry
  };
  // The new rate, if it changes.
  std::optional<std::uint32_t> observe(const Link& link, TimePoint now) noexcept;

 private:
  std::size_t step_ = kFirstStep;
  TimePoint changed_at_, calm_since_;

  static constexpr std::size_t kFirstStep = 2;
};

}  // namespace tts::stream
