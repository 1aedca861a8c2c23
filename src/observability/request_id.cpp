#include "tts/observability/request_id.h"

#include <algorithm>
#include <cstdint>
#include <random>

namespace tts::observability {
namespace {

constexpr std::size_t kMaxLength = 64;
constexpr std::size_t kNewLength = 24;

bool allowed(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

std::mt19937_64& generator() {
  thread_local std::mt19937_64 engine = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return engine;
}

}  // namespace

bool is_request_id(std::string_view id) noexcept {
  return !id.empty() && id.size() <= kMaxLength && std::all_of(id.begin(), id.end(), allowed);
}

std::string new_request_id() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  id.reserve(kNewLength);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kNewLength; ++i) {
    if (i % 16 == 0) bits = generator()();
    id.push_back(kDigits[bits & 15U]);
    bits >>= 4U;
  }
  return id;
}

std::string choose_request_id(std::string_view offered) { return is_request_id(offered) ? std::string(offered) : new_request_id(); }

}  // namespace tts::observability
