#pragma once
// The half of this module that runs on libtorch, behind a door that the other half can leave closed.
//
// It is a shared library of its own beside the program (tts_tensors), loaded when first asked for and never unloaded: libtorch alone takes
// 100 MB of resident memory and a third of a second, which a server on the CPU has no use for.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "tts/engine/manifest.h"
#include "tts/engine/step_engine.h"
#include "tts/model/model.h"

#include "torch/device_plan.h"

namespace tts::model {

class TensorBackend {
 public:
  virtual ~TensorBackend() = default;
  virtual std::uint32_t count_gpus() const noexcept = 0;            // that work; touches none of them
  virtual std::vector<std::uint64_t> gpu_bytes_in_use() const = 0;  // by this process, of each GPU. Thread-safe
  virtual std::vector<std::unique_ptr<engine::StepEngine>> load_engines(const engine::Manifest& manifest, const ModelOptions& options,
                                                                        std::uint32_t context, const DeviceChoice& choice) const = 0;
};

// Whether the libtorch of this build knows CUDA.
bool built_for_gpus() noexcept;

// Whether NVIDIA's driver is on this machine. Without it there are no GPUs, which libtorch need not be loaded to find out.
bool has_gpu_driver() noexcept;

// Loads the one beside the program at the first call. Throws as load_tensor_backend() does. Thread-safe.
const TensorBackend& tensor_backend();

// Throws std::runtime_error that says what to do when the library is not there, does not load, or comes from sources whose interface (this
// header and those it shows) is another.
const TensorBackend& load_tensor_backend(const std::filesystem::path& path);

// Null until somebody has asked. Thread-safe.
const TensorBackend* loaded_tensor_backend() noexcept;

}  // namespace tts::model
