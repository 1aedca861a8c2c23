#include "utterance_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "speaker_norm.h"

namespace tts::model {
namespace {

Error invalid(std::string param, std::string message) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(message), .param = std::move(param)};
}

// false for NaN
bool inside(float value, double low, double high) { return value >= static_cast<float>(low) && value <= static_cast<float>(high); }

}  // namespace

Result<std::vector<float>> check_utterance(const UtteranceLimits& limits, const engine::UtterancePrompt& prompt,
                                           const engine::SamplingParams& sampling) {
  const engine::GptSizes& sizes = limits.sizes;
  const auto is_text_token = [&](std::int32_t token) { return token >= 0 && static_cast<std::uint32_t>(token) < sizes.num_text_tokens; };
  const std::uint32_t end_code = sizes.num_audio_tokens - 1;

  if (prompt.tokens.empty()) return invalid("tokens", "the prompt is empty");
  if (prompt.shared_prefix >= prompt.tokens.size()) return invalid("shared_prefix", "the shared prefix must leave a token of the prompt");
  if (!std::all_of(prompt.tokens.begin(), prompt.tokens.end(), is_text_token))
    return invalid("tokens", "the prompt holds ids outside the vocabulary");
  for (const engine::CodeFrame& frame : prompt.audio_prompt) {
    if (std::any_of(frame.begin(), frame.end(), [&](std::uint16_t code) { return code >= end_code; })) {
      return invalid("audio_prompt", "the audio prompt holds codes outside 0.." + std::to_string(end_code - 1));
    }
  }
  if (prompt.speaker && (prompt.speaker->size() != sizes.hidden_size ||
                         !std::all_of(prompt.speaker->begin(), prompt.speaker->end(), [](float value) { return std::isfinite(value); }))) {
    return invalid("speaker", "the speaker vector must hold " + std::to_string(sizes.hidden_size) + " finite values");
  }
  if (prompt.stage == engine::Stage::kText) {
    if (!limits.text_head)
      return Error{.code = ErrorCode::kUnsupported, .message = "this model cannot refine text", .param = "stage", .retry_after = {}};
    if (!is_text_token(prompt.end_token)) return invalid("end_token", "the end token is outside the vocabulary");
  }

  for (const float temperature : sampling.temperature) {
    if (!inside(temperature, engine::kMinTemperature, engine::kMaxTemperature))
      return invalid("temperature", "temperature must be from 0.01 to 2");
  }
  if (!inside(sampling.top_p, 0.0F, 1.0F)) return invalid("top_p", "top_p must be from 0 to 1");
  if (!inside(sampling.repetition_penalty, engine::kMinRepetitionPenalty, engine::kMaxRepetitionPenalty)) {
    return invalid("repetition_penalty", "repetition_penalty must be from 0.1 to 10");
  }
  if (sampling.max_steps == 0) return invalid("max_steps", "max_steps must be above 0");
  if (const std::uint64_t positions = std::uint64_t{prompt.tokens.size()} + prompt.audio_prompt.size() + sampling.max_steps;
      positions > limits.max_context) {
    return Error{.code = ErrorCode::kTooLarge,
                 .message = "prompt and max_steps need " + std::to_string(positions) + " positions, the limit is " +
                            std::to_string(limits.max_context),
                 .param = "max_steps",
                 .retry_after = {}};
  }

  if (!prompt.speaker) return std::vector<float>{};
  std::vector<float> speaker = normalise_speaker(*prompt.speaker, limits.speaker_precision);
  if (!std::all_of(speaker.begin(), speaker.end(), [](float value) { return std::isfinite(value); })) {
    return invalid("speaker", "the speaker vector is too large for half precision");
  }
  return speaker;
}

}  // namespace tts::model
