#pragma once
// What a browser sees at "/": the endpoints and a form that plays the stream while it arrives.

#include <string_view>

namespace tts::net {

std::string_view home_page() noexcept;

}  // namespace tts::net
