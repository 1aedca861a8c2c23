#include "bodies.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace tts::bench {

std::optional<std::string> choose_voice(std::string_view voices_document, std::string_view language) {
  try {
    const auto document = nlohmann::json::parse(voices_document);
    const auto speaks = [&](const nlohmann::json& voice) {
      const auto& languages = voice.at("languages");
      return std::find(languages.begin(), languages.end(), language) != languages.end();
    };
    const auto& voices = document.at("data");
    for (const auto& voice : voices) {
      if (voice.value("default", false) && (speaks(voice) || voice.at("languages").empty())) return voice.at("id").get<std::string>();
    }
    const auto found = std::find_if(voices.begin(), voices.end(), speaks);
    if (found == voices.end()) return std::nullopt;
    return found->at("id").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error("the server's list of voices cannot be read; is it a chattts-server?");
  }
}

Bodies::Bodies(std::vector<Text> texts, std::vector<std::string> voices, nlohmann::ordered_json common, std::uint64_t seed)
    : texts_(std::move(texts)), voices_(std::move(voices)), common_(std::move(common)), seed_(seed) {
  assert(!texts_.empty() && voices_.size() == texts_.size());
}

std::string Bodies::next() {
  const auto index = next_++ % texts_.size();
  auto body = common_;
  body["text"] = texts_[index].text;
  if (!voices_[index].empty()) body["voice"] = voices_[index];
  body["seed"] = seed_++;
  return body.dump();
}

}  // namespace tts::bench
