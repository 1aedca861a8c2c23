#pragma once
// What the voice can say: symbols.json of the model.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tts::text {

using SymbolId = std::int32_t;

// Immutable.
class SymbolTable {
 public:
  // Takes the content of symbols.json: {"symbols": [...], "function_words": {word: [phone, ...]}, "letters": {letter: [phone, ...]}}.
  // Throws std::runtime_error when it is malformed or holds more symbols than `vocabulary` (the rows of the model's text embedding).
  SymbolTable(std::span<const std::byte> json, std::size_t vocabulary);

  std::optional<SymbolId> find(std::string_view name) const;
  // Throws std::runtime_error when the voice has no such symbol.
  SymbolId at(std::string_view name) const;

  using Phones = std::vector<std::string>;
  const std::map<std::string, Phones, std::less<>>& function_words() const noexcept { return function_words_; }
  const Phones& letter(char lower_case) const noexcept { return letters_[static_cast<std::size_t>(lower_case - 'a')]; }

 private:
  std::map<std::string, SymbolId, std::less<>> ids_;
  std::map<std::string, Phones, std::less<>> function_words_;
  std::vector<Phones> letters_;  // 26
};

}  // namespace tts::text
