#pragma once

#include <cstddef>
#include <cstdint>

namespace tts::model::ops {

inline constexpr std::size_t kPanel = 16;  // columns that lie together in every weight layout; gates and ups alternate in panels

enum class Finish : std::uint8_t { kStore, kGelu, kSwiGlu, kAdd };

}  // namespace tts::model::ops
