#pragma once
// From a request's wishes to what an engine is asked for one sentence.

#include <cstdint>
#include <vector>

#include "tts/engine/utterance_engine.h"
#include "tts/engine/voice.h"
#include "tts/synthesis/synthesis.h"
#include "tts/text/front_end.h"

namespace tts::synthesis {

// The model's defaults with the client's values in place.
engine::SamplingParams merge(const engine::SamplingParams& defaults, const SamplingOverrides& overrides) noexcept;

// Values that are set in `later` take the place of those in `values`.
void override_with(SamplingOverrides& values, const SamplingOverrides& later) noexcept;

// Every sentence draws from numbers of its own; the first one from the request's seed itself, so that a single sentence sounds as
// if it had been given to the model directly.
std::uint64_t sentence_seed(std::uint64_t request_seed, std::uint32_t sentence) noexcept;
std::uint64_t refine_seed(std::uint64_t request_seed, std::uint32_t sentence) noexcept;

// What speech() and refinement() leave to the caller: listener and runs_dry_at.
engine::UtteranceRequest speech(const SynthesisRequest& request, const engine::Voice& voice, const engine::SamplingParams& defaults,
                                std::int32_t speaker_token, const text::PreparedUtterance& prepared, std::uint64_t seed);

// The refine pass: writes the sentence anew with prosody marks.
engine::UtteranceRequest refinement(const SynthesisRequest& request, std::int32_t end_token, std::vector<std::int32_t> tokens,
                                    std::uint64_t seed);

}  // namespace tts::synthesis
