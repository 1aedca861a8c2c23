#include "tts/base/result.h"

namespace tts {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kTooLarge: return "too_large";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kQueueFull: return "queue_full";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kDeadlineExceeded: return "deadline_exceeded";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kEngineFailure: return "engine_failure";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

}  // namespace tts
