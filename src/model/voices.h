#pragma once
// The manifest's voices with their speaker vectors resolved.

#include <vector>

#include "tts/engine/manifest.h"
#include "tts/engine/voice.h"

namespace tts::model {

// In manifest order. Reads the `speakers` file for tensor voices and `speaker_stat` for seeds. Blocks. Throws std::runtime_error
// listing every voice that cannot be resolved.
std::vector<engine::Voice> load_voices(const engine::Manifest& manifest, bool verify_hashes);

}  // namespace tts::model
