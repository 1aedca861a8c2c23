#pragma once
// Engines on tensors for the devices that were chosen: one a device, or one over all of them (device_map), times `instances`.

#include <cstdint>
#include <memory>
#include <vector>

#include "tts/engine/manifest.h"
#include "tts/engine/step_engine.h"
#include "tts/model/model.h"

#include "torch/device_plan.h"
#include "torch/gpt_tensors.h"

namespace tts::model {

// What a device computes well; both false = the host.
struct DeviceAbilities {
  bool gpu = false;
  bool bfloat16 = false;  // compute capability 8.0 and up
};

// Throws std::runtime_error when the precision asked for is not to be had there.
TensorFormats choose_tensor_formats(const Precision& precision, const DeviceAbilities& device);

// Blocks for the whole load. `context` = positions of a slot; the manifest's sizes passed check_gpt_sizes(). Throws std::runtime_error
// listing what is wrong with which file, or what does not fit where.
std::vector<std::unique_ptr<engine::StepEngine>> load_tensor_engines(const engine::Manifest& manifest, const ModelOptions& options,
                                                                     std::uint32_t context, const DeviceChoice& choice);

}  // namespace tts::model
