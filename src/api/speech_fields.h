#pragma once
// Fields that mean the same wherever speech is asked for; each dialect says where their values go.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tts/api/catalog.h"
#include "tts/engine/utterance_engine.h"

#include "field_table.h"

namespace tts::api {

FieldRules voice_rules();
FieldRules speed_rules();
FieldRules seed_rules(std::string_view where_told);  // where the reply says which seed was used
FieldRules temperature_rules();
FieldRules top_p_rules();
FieldRules top_k_rules();
FieldRules repetition_penalty_rules();
FieldRules language_rules();
FieldRules latency_rules();
FieldRules with_fallback(FieldRules rules, nlohmann::json fallback);

Status check_voice(const std::string& id, const Catalog& catalog);
std::string voice_ids(const Catalog& catalog);
bool has_voice(const Catalog& catalog, std::string_view id);

// kTooLarge; `per`: what the limit is for.
Status check_length(std::string_view field, std::size_t characters, const Catalog& catalog, std::string_view per);

std::string language_of(const nlohmann::json& value);  // "" = decided sentence by sentence
engine::Latency latency_of(const nlohmann::json& value);

// A field whose value goes straight into what slot(target) refers to.
template <class Value, class Target, class Slot>
Field<Target> stored(FieldRules rules, Slot slot) {
  return {std::move(rules), [slot](const nlohmann::json& value, Target& target) -> Status {
            slot(target) = value.get<Value>();
            return Ok{};
          }};
}

template <class Target, class Slot>
Field<Target> voice_field(const Catalog& catalog, FieldRules rules, Slot slot) {
  return {std::move(rules), [c = &catalog, slot](const nlohmann::json& value, Target& target) -> Status {
            if (auto status = check_voice(value.get_ref<const std::string&>(), *c); !status) return status;
            slot(target) = value.get<std::string>();
            return Ok{};
          }};
}

template <class Target, class Slot>
Field<Target> language_field(FieldRules rules, Slot slot) {
  return {std::move(rules), [slot](const nlohmann::json& value, Target& target) -> Status {
            slot(target) = language_of(value);
            return Ok{};
          }};
}

template <class Target, class Slot>
Field<Target> latency_field(Slot slot) {
  return {latency_rules(), [slot](const nlohmann::json& value, Target& target) -> Status {
            slot(target) = latency_of(value);
            return Ok{};
          }};
}

// temperature, top_p, top_k and repetition_penalty into the SamplingOverrides that sampling(target) refers to.
template <class Target, class Sampling>
void add_sampling_fields(std::vector<Field<Target>>& table, Sampling sampling) {
  table.push_back(stored<float, Target>(temperature_rules(), [sampling](Target& t) -> auto& { return sampling(t).temperature; }));
  table.push_back(stored<float, Target>(top_p_rules(), [sampling](Target& t) -> auto& { return sampling(t).top_p; }));
  table.push_back(stored<std::uint32_t, Target>(top_k_rules(), [sampling](Target& t) -> auto& { return sampling(t).top_k; }));
  table.push_back(
      stored<float, Target>(repetition_penalty_rules(), [sampling](Target& t) -> auto& { return sampling(t).repetition_penalty; }));
}

}  // namespace tts::api
