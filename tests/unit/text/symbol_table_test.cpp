#include "symbol_table.h"

#include <gtest/gtest.h>

#include "nano_voice.h"

namespace tts::text::testing {
namespace {

SymbolTable table_of(const nlohmann::json& json, std::size_t vocabulary = 320) {
  const std::string text = json.dump();
  return SymbolTable(std::as_bytes(std::span(text)), vocabulary);
}

nlohmann::json valid() {
  std::ifstream file(nano_directory() / "symbols.json");
  return nlohmann::json::parse(file);
}

TEST(SymbolTable, IdsArePositions) {
  const SymbolTable table = table_of(valid());
  EXPECT_EQ(table.at("[pad]"), 0);
  EXPECT_EQ(table.at("[Stts]"), 1);
  EXPECT_EQ(table.find("no such symbol"), std::nullopt);
  EXPECT_THROW(table.at("no such symbol"), std::runtime_error);
}

TEST(SymbolTable, RefusesMoreSymbolsThanTheModelHasRows) { EXPECT_THROW(table_of(valid(), 100), std::runtime_error); }

TEST(SymbolTable, RefusesMalformedFiles) {
  for (const char* key : {"symbols", "function_words", "letters"}) {
    auto json = valid();
    json.erase(key);
    EXPECT_THROW(table_of(json), std::runtime_error) << key;
    json[key] = 7;
    EXPECT_THROW(table_of(json), std::runtime_error) << key;
  }
  auto twice = valid();
  twice["symbols"].push_back("[pad]");
  EXPECT_THROW(table_of(twice), std::runtime_error);
  auto no_letter = valid();
  no_letter["letters"].erase("q");
  EXPECT_THROW(table_of(no_letter), std::runtime_error);
  EXPECT_THROW(SymbolTable({}, 320), std::runtime_error);
}

}  // namespace
}  // namespace tts::text::testing
