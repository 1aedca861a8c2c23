#include "resume_token.h"

#include <array>
#include <cstdint>
#include <random>
#include <span>

#include "tts/base/sha256.h"

namespace tts::stream {

std::string random_id() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  thread_local std::random_device device;  // getrandom or rdrand: no state that could be guessed
  std::string id;
  for (int word = 0; word < 4; ++word) {
    std::uint32_t bits = device();
    for (int digit = 0; digit < 8; ++digit, bits >>= 4U) id += kDigits[bits & 15U];
  }
  return id;
}

TokenHash::TokenHash(std::string_view token) : hash_(sha256_hex(std::as_bytes(std::span(token)))) {}

bool TokenHash::matches(std::string_view token) const {
  const std::string other = sha256_hex(std::as_bytes(std::span(token)));
  unsigned difference = 0;
  for (std::size_t i = 0; i < hash_.size(); ++i) difference |= static_cast<unsigned char>(hash_[i]) ^ static_cast<unsigned char>(other[i]);
  return difference == 0;
}

}  // namespace tts::stream
