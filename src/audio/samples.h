#pragma once
// One sample's way from the model's float to what codecs take.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tts::audio {

// Into [-1, 1]; NaN becomes silence, because one bad sample must not poison a codec's filter memory.
inline float clean(float sample) noexcept { return std::isnan(sample) ? 0.0F : std::clamp(sample, -1.0F, 1.0F); }

// Round to nearest, without dither: speech at this level is far above the quantisation noise, and equal input stays equal output.
inline std::int16_t to_s16(float sample) noexcept { return static_cast<std::int16_t>(std::lrint(clean(sample) * 32767.0F)); }

}  // namespace tts::audio
