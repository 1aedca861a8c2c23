#pragma once
// The sound half of the model: everything behind the language model, loaded from the decoder, dvae and vocos files.

#include <memory>

#include "tts/engine/manifest.h"

#include "dvae.h"
#include "mel_network.h"
#include "vocos.h"

namespace tts::model {

// Immutable after loading; shared by every stream. See StreamDecoder for running it.
struct SoundModel {
  MelNetwork decoder;                // hidden states -> log-mel
  std::unique_ptr<const Dvae> dvae;  // codes -> log-mel, reference recording -> codes
  Vocos vocos;                       // log-mel -> samples
  ops::WeightFormat format;
};

// Blocks. Throws std::runtime_error listing everything wrong with the three files (hash first when asked for).
// `format` is float32 or bfloat16.
SoundModel load_sound_model(const engine::Manifest& manifest, bool verify_hashes, ops::WeightFormat format);

}  // namespace tts::model
