#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tts/synthesis/synthesis.h"

namespace tts::synthesis {

// One sentence for each value out of range; empty = all is well.
std::vector<std::string> problems(const ServiceOptions& options);

// The first thing about the request that this service cannot do. Looks at plain values only: no text is prepared.
std::optional<Error> refusal(const SynthesisRequest& request, const ServiceOptions& options, bool has_refine);

std::optional<Error> refused_speed(double speed);

}  // namespace tts::synthesis
