#pragma once
// Names a request in logs, errors and the x-request-id header.

#include <string>
#include <string_view>

namespace tts::observability {

// 1 to 64 characters of [A-Za-z0-9._-].
bool is_request_id(std::string_view id) noexcept;

// 24 random lower-case hexadecimal digits. Thread-safe.
std::string new_request_id();

// The client's own id when it is a sane one, else a new one.
std::string choose_request_id(std::string_view offered);

}  // namespace tts::observability
