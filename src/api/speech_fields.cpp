#include "speech_fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "tts/engine/utterance.h"

#include "strict_json.h"

namespace tts::api {

FieldRules voice_rules() { return {.name = "voice", .description = "A voice id; GET /v1/voices lists them."}; }

FieldRules speed_rules() {
  return {.name = "speed",
          .kind = FieldKind::kNumber,
          .description = "Speaking rate with the pitch kept; 2 is twice as fast.",
          .min = 0.5,
          .max = 2.0};
}

FieldRules seed_rules(std::string_view where_told) {
  return {.name = "seed",
          .kind = FieldKind::kInteger,
          .description = "Same seed, same request, same audio. Absent = random; " + std::string(where_told) + " tells which.",
          .min = 0,
          .max = 18446744073709551615.0};
}

FieldRules temperature_rules() {
  return {.name = "temperature",
          .kind = FieldKind::kNumber,
          .description = "Sampling temperature of the audio codes.",
          .min = engine::kMinTemperature,
          .max = engine::kMaxTemperature};
}

FieldRules top_p_rules() {
  return {.name = "top_p",
          .kind = FieldKind::kNumber,
          .description = "Keep the most probable codes up to this share; 1 = off.",
          .min = 0.0,
          .max = 1.0};
}

FieldRules top_k_rules() {
  return {.name = "top_k",
          .kind = FieldKind::kInteger,
          .description = "Keep this many of the most probable codes; 0 = off.",
          .min = 0,
          .max = 1'000};
}

FieldRules repetition_penalty_rules() {
  return {.name = "repetition_penalty",
          .kind = FieldKind::kNumber,
          .description = "Above 1 makes recent codes less likely; 1 = off.",
          .min = engine::kMinRepetitionPenalty,
          .max = engine::kMaxRepetitionPenalty};
}

FieldRules language_rules() {
  return {.name = "language",
          .description = "Language of numbers and the like; auto decides sentence by sentence.",
          .choices = {"auto", "zh", "en"}};
}

FieldRules latency_rules() {
  return {.name = "latency",
          .description = "low: the first sound comes as early as possible, its samples a close approximation; exact: every sample is "
                         "that of the whole sentence decoded at once; absent = as the server is configured.",
          .choices = {"low", "exact"}};
}

FieldRules with_fallback(FieldRules rules, nlohmann::json fallback) {
  rules.fallback = std::move(fallback);
  return rules;
}

std::string voice_ids(const Catalog& catalog) {
  std::string ids;
  for (const auto& voice : catalog.voices) ids += (ids.empty() ? "" : ", ") + voice.id;
  return ids;
}

bool has_voice(const Catalog& catalog, std::string_view id) {
  return std::any_of(catalog.voices.begin(), catalog.voices.end(), [&](const CatalogVoice& voice) { return voice.id == id; });
}

Status check_voice(const std::string& id, const Catalog& catalog) {
  if (has_voice(catalog, id)) return Ok{};
  return invalid_field("voice", "there is no voice " + in_quotes(id) + "; this server has " + voice_ids(catalog) + " (GET /v1/voices)");
}

Status check_length(std::string_view field, std::size_t characters, const Catalog& catalog, std::string_view per) {
  if (characters <= catalog.max_text_chars) return Ok{};
  return Error{.code = ErrorCode::kTooLarge,
               .message = fmt::format("'{}' has {} characters; this server takes at most {} per {} (max_text_chars)", field, characters,
                                      catalog.max_text_chars, per),
               .param = std::string(field),
               .retry_after = {}};
}

std::string language_of(const nlohmann::json& value) { return value == "auto" ? std::string() : value.get<std::string>(); }

engine::Latency latency_of(const nlohmann::json& value) { return value == "low" ? engine::Latency::kLow : engine::Latency::kExact; }

}  // namespace tts::api
