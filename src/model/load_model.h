#pragma once
// The load of a model, with what runs GPUs given from outside.

#include <functional>

#include "tts/engine/manifest.h"
#include "tts/model/model.h"

#include "tensor_backend.h"

namespace tts::model {

struct GpuSupport {
  bool built = false;                             // this build of libtorch knows CUDA
  bool driver = false;                            // the machine has what GPUs need
  std::function<const TensorBackend&()> backend;  // throws when it cannot be had
};

// load_model() is this with what the machine has.
LoadedModel load_model(const engine::Manifest& manifest, const ModelOptions& options, const GpuSupport& gpus);

}  // namespace tts::model
