#pragma once
// The stream of requests that a benchmark sends.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "workload.h"

namespace tts::bench {

// The voice for a language from a GET /v1/voices document: the default voice if it speaks the language or does not say what it speaks,
// else the first that does; empty when none does. Throws std::runtime_error when the document is none.
std::optional<std::string> choose_voice(std::string_view voices_document, std::string_view language);

class Bodies {
 public:
  // `common`: fields of every request. `voices`: for each text, what it is spoken with; empty = the server's default. Neither may be empty.
  Bodies(std::vector<Text> texts, std::vector<std::string> voices, nlohmann::ordered_json common, std::uint64_t seed);

  // All texts in turn, each time with another seed. Two objects with equal arguments give the same requests.
  std::string next();

 private:
  std::vector<Text> texts_;
  std::vector<std::string> voices_;
  nlohmann::ordered_json common_;
  std::uint64_t seed_;
  std::size_t next_ = 0;
};

}  // namespace tts::bench
