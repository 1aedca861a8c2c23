#pragma once
// Words of the WebSocket protocol that more than one file needs.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tts/audio/format.h"

namespace tts::api {

struct StreamFormat {
  std::string_view name;
  audio::Container container;
  bool opus;
};

inline constexpr std::array<StreamFormat, 5> kStreamFormats{{{"opus", audio::Container::kOpusPackets, true},
                                                             {"ogg_opus", audio::Container::kOggOpus, true},
                                                             {"pcm_s16le", audio::Container::kPcm, false},
                                                             {"mulaw", audio::Container::kMulaw, false},
                                                             {"alaw", audio::Container::kAlaw, false}}};

// Precondition: one of those above.
const StreamFormat& stream_format(audio::Container container) noexcept;

namespace stream_code {
inline constexpr std::string_view kInvalidMessage = "invalid_message", kInvalidField = "invalid_field", kUnknownContext = "unknown_context",
                                  kDuplicateContext = "duplicate_context", kTooManyContexts = "too_many_contexts",
                                  kTextTooLong = "text_too_long", kNothingToSay = "nothing_to_say", kQueueFull = "queue_full",
                                  kUnavailable = "unavailable", kDeadlineExceeded = "deadline_exceeded",
                                  kEngineFailure = "engine_failure", kInternal = "internal";
inline constexpr std::array<std::string_view, 12> kAll{kInvalidMessage,  kInvalidField, kUnknownContext, kDuplicateContext,
                                                       kTooManyContexts, kTextTooLong,  kNothingToSay,   kQueueFull,
                                                       kUnavailable,     kDeadlineExceeded, kEngineFailure, kInternal};
}  // namespace stream_code

template <std::size_t N>
std::vector<std::string> as_choices(const std::array<std::string_view, N>& words) {
  return {words.begin(), words.end()};
}

}  // namespace tts::api
