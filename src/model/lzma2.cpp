#include "lzma2.h"

#include <algorithm>
#include <array>

#include <lzma.h>

namespace tts::model {
namespace {

constexpr std::size_t kMaxChunk = 65536;
constexpr std::uint8_t kEnd = 0, kFirstChunk = 1, kLaterChunk = 2;  // control bytes: end, uncompressed with and without dictionary reset

class Decoder {
 public:
  Decoder() = default;
  ~Decoder() { lzma_end(&stream_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  lzma_stream& stream() { return stream_; }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

}  // namespace

std::vector<std::uint8_t> store_lzma2(std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> out;
  for (std::size_t begin = 0; begin < bytes.size(); begin += kMaxChunk) {
    const std::span<const std::uint8_t> chunk = bytes.subspan(begin, std::min(kMaxChunk, bytes.size() - begin));
    const std::size_t stored = chunk.size() - 1;
    out.insert(out.end(),
               {begin == 0 ? kFirstChunk : kLaterChunk, static_cast<std::uint8_t>(stored >> 8), static_cast<std::uint8_t>(stored)});
    out.insert(out.end(), chunk.begin(), chunk.end());
  }
  out.push_back(kEnd);
  return out;
}

Result<std::vector<std::uint8_t>> decode_lzma2(std::span<const std::uint8_t> stream, std::size_t size) {
  lzma_options_lzma options{};
  // The writers' dictionary is 64 MiB, but nothing can refer further back than the output is long.
  options.dict_size = static_cast<std::uint32_t>(std::clamp<std::size_t>(size, LZMA_DICT_SIZE_MIN, std::size_t{64} << 20));
  const std::array<lzma_filter, 2> filters{{{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}}};
  Decoder decoder;
  if (lzma_raw_decoder(&decoder.stream(), filters.data()) != LZMA_OK) return Error{ErrorCode::kInternal, "LZMA2 decoder unavailable"};
  std::vector<std::uint8_t> out(size + 1);  // one more byte, to see a stream that goes on
  decoder.stream().next_in = stream.data();
  decoder.stream().avail_in = stream.size();
  decoder.stream().next_out = out.data();
  decoder.stream().avail_out = out.size();
  const lzma_ret result = lzma_code(&decoder.stream(), LZMA_FINISH);
  if (result != LZMA_STREAM_END || decoder.stream().avail_in != 0 || decoder.stream().total_out != size) {
    return Error{ErrorCode::kInvalidArgument, "the compressed data is damaged or of another length than expected"};
  }
  out.pop_back();
  return out;
}

}  // namespace tts::model
