#pragma once
// Raw LZMA2 streams (no container, no check), the compression layer of ChatTTS's speaker strings.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tts/base/result.h"

namespace tts::model {

// A stream of uncompressed chunks, which every LZMA2 decoder accepts.
std::vector<std::uint8_t> store_lzma2(std::span<const std::uint8_t> bytes);

// kInvalidArgument unless the stream is whole, nothing follows it and exactly `size` bytes come out. Memory is bounded by `size`,
// whatever the stream holds.
Result<std::vector<std::uint8_t>> decode_lzma2(std::span<const std::uint8_t> stream, std::size_t size);

}  // namespace tts::model
