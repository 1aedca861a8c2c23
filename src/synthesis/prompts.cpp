#include "prompts.h"

#include <utility>

namespace tts::synthesis {
namespace {

engine::UtteranceRequest utterance_of(const SynthesisRequest& request) {
  engine::UtteranceRequest utterance;
  utterance.request_id = request.request_id;
  utterance.deadline = request.deadline;
  utterance.delivery = request.whole ? engine::Delivery::kWhole : engine::Delivery::kStreamed;
  utterance.latency = request.latency;
  utterance.pace = request.speed;
  return utterance;
}

std::uint64_t mixed(std::uint64_t x) noexcept {  // splitmix64 (Steele, Lea, Flood 2014)
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

}  // namespace

engine::SamplingParams merge(const engine::SamplingParams& defaults, const SamplingOverrides& overrides) noexcept {
  engine::SamplingParams merged = defaults;
  if (overrides.temperature) merged.temperature.fill(*overrides.temperature);
  if (overrides.top_p) merged.top_p = *overrides.top_p;
  if (overrides.top_k) merged.top_k = *overrides.top_k;
  if (overrides.repetition_penalty) merged.repetition_penalty = *overrides.repetition_penalty;
  if (overrides.min_steps) merged.min_steps = *overrides.min_steps;
  if (overrides.max_steps) merged.max_steps = *overrides.max_steps;
  return merged;
}

void override_with(SamplingOverrides& values, const SamplingOverrides& later) noexcept {
  const auto take = [](auto& value, const auto& other) {
    if (other) value = other;
  };
  take(values.temperature, later.temperature);
  take(values.top_p, later.top_p);
  take(values.repetition_penalty, later.repetition_penalty);
  take(values.top_k, later.top_k);
  take(values.min_steps, later.min_steps);
  take(values.max_steps, later.max_steps);
}

std::uint64_t sentence_seed(std::uint64_t request_seed, std::uint32_t sentence) noexcept {
  return sentence == 0 ? request_seed : mixed(request_seed ^ mixed(sentence));
}

std::uint64_t refine_seed(std::uint64_t request_seed, std::uint32_t sentence) noexcept {
  constexpr std::uint64_t kRefineStream = 1ULL << 32U;  // beyond every sentence number
  return mixed(request_seed ^ mixed(kRefineStream + sentence));
}

engine::UtteranceRequest speech(const SynthesisRequest& request, const engine::Voice& voice, const engine::SamplingParams& defaults,
                                std::int32_t speaker_token, const text::PreparedUtterance& prepared, std::uint64_t seed) {
  auto utterance = utterance_of(request);
  utterance.sampling = merge(defaults, request.sampling);
  utterance.sampling.seed = seed;
  utterance.prompt.stage = engine::Stage::kCode;
  utterance.prompt.mel_path = request.mel_path;
  utterance.prompt.tokens = prepared.tokens;
  utterance.prompt.shared_prefix = prepared.shared_prefix;
  utterance.prompt.speaker = voice.speaker;
  if (voice.speaker) utterance.prompt.speaker_token = speaker_token;
  return utterance;
}

engine::UtteranceRequest refinement(const SynthesisRequest& request, std::int32_t end_token, std::vector<std::int32_t> tokens,
                                    std::uint64_t seed) {
  auto utterance = utterance_of(request);
  utterance.prompt.stage = engine::Stage::kText;
  utterance.prompt.tokens = std::move(tokens);
  utterance.prompt.end_token = end_token;
  // ChatTTS's published defaults of the refine pass; the client's sampling values are for speech.
  utterance.sampling.temperature.fill(0.7F);
  utterance.sampling.top_p = 0.7F;
  utterance.sampling.top_k = 20;
  utterance.sampling.repetition_penalty = 1.0F;
  utterance.sampling.min_steps = 0;
  utterance.sampling.max_steps = 384;
  utterance.sampling.seed = seed;
  return utterance;
}

}  // namespace tts::synthesis
