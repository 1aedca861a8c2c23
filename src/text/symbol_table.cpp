#include "symbol_table.h"

#include <stdexcept>

#include <nlohmann/json.hpp>

namespace tts::text {

SymbolTable::SymbolTable(std::span<const std::byte> json, std::size_t vocabulary) {
  try {
    const auto* text = reinterpret_cast<const char*>(json.data());
    const auto document = nlohmann::json::parse(text, text + json.size());
    SymbolId id = 0;
    for (const auto& name : document.at("symbols")) {
      if (!ids_.emplace(name.get<std::string>(), id++).second) throw std::runtime_error("symbol twice: " + name.get<std::string>());
    }
    if (ids_.size() > vocabulary) {
      throw std::runtime_error(std::to_string(ids_.size()) + " symbols, but the model knows " + std::to_string(vocabulary));
    }
    document.at("function_words").get_to(function_words_);
    for (char letter = 'a'; letter <= 'z'; ++letter) letters_.push_back(document.at("letters").at(std::string(1, letter)).get<Phones>());
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("malformed symbol table: ") + error.what());
  }
}

std::optional<SymbolId> SymbolTable::find(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

SymbolId SymbolTable::at(std::string_view name) const {
  const auto id = find(name);
  if (!id) throw std::runtime_error("the voice has no symbol \"" + std::string(name) + "\"");
  return *id;
}

}  // namespace tts::text
