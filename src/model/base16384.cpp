#include "base16384.h"

#include "tts/base/utf8.h"

namespace tts::model {
namespace {

constexpr char32_t kFirst = 0x4E00, kMarker = 0x3D00;
constexpr unsigned kBitsPerCharacter = 14;
constexpr std::size_t kGroupBytes = 7, kGroupCharacters = 4;
constexpr std::size_t kUtf8Bytes = 3;  // every character of the alphabet takes three

constexpr std::size_t characters_for(std::size_t bytes) { return (bytes * 8 + kBitsPerCharacter - 1) / kBitsPerCharacter; }

Error invalid(const char* why) { return {ErrorCode::kInvalidArgument, std::string("not a base16384 string: ") + why}; }

}  // namespace

std::string encode_base16384(std::span<const std::uint8_t> bytes) {
  std::string out;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const std::uint8_t byte : bytes) {
    bits = bits << 8 | byte;
    held += 8;
    if (held >= kBitsPerCharacter) {
      held -= kBitsPerCharacter;
      append_utf8(out, kFirst + (bits >> held & 0x3FFF));
    }
  }
  if (held > 0) append_utf8(out, kFirst + (bits << (kBitsPerCharacter - held) & 0x3FFF));
  if (const std::size_t rest = bytes.size() % kGroupBytes; rest != 0) append_utf8(out, kMarker + static_cast<char32_t>(rest));
  return out;
}

Result<std::vector<std::uint8_t>> decode_base16384(std::string_view utf8, std::size_t max_bytes) {
  // The length decides before anything is decoded: one more character than the longest text of max_bytes, for the marker.
  if (utf8.size() / kUtf8Bytes > characters_for(max_bytes) + 1) return Error{ErrorCode::kTooLarge, "the base16384 string is too long"};
  if (find_invalid_utf8(utf8)) return invalid("invalid UTF-8");
  const std::u32string text = decode_utf8(utf8);

  std::size_t characters = text.size(), rest = 0;
  if (!text.empty() && text.back() > kMarker && text.back() < kMarker + kGroupBytes) {
    rest = text.back() - kMarker;
    --characters;
    const std::size_t tail = characters_for(rest);
    if (characters < tail || (characters - tail) % kGroupCharacters != 0) return invalid("the marker does not fit the length");
    characters -= tail;
  } else if (characters % kGroupCharacters != 0) {
    return invalid("the length is not a multiple of 4 and there is no marker");
  }
  const std::size_t size = characters / kGroupCharacters * kGroupBytes + rest;
  if (size > max_bytes) return Error{ErrorCode::kTooLarge, "the base16384 string is too long"};

  std::vector<std::uint8_t> bytes;
  bytes.reserve(size);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (std::size_t i = 0; bytes.size() < size; ++i) {
    if (text[i] < kFirst || text[i] > kFirst + 0x3FFF) return invalid("a character outside the alphabet");
    bits = bits << kBitsPerCharacter | (text[i] - kFirst);
    held += kBitsPerCharacter;
    for (; held >= 8 && bytes.size() < size; held -= 8) bytes.push_back(static_cast<std::uint8_t>(bits >> (held - 8)));
  }
  return bytes;
}

}  // namespace tts::model
