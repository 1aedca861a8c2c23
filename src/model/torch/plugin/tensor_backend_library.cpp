// What the shared library tts_tensors shows of itself: one function, whose name tells which interface it was built with.

#include "tensor_backend.h"
#include "torch/load_tensor_engines.h"
#include "torch/runtime.h"

namespace tts::model {
namespace {

class TorchBackend final : public TensorBackend {
 public:
  std::uint32_t count_gpus() const noexcept override { return model::count_gpus(); }
  std::vector<std::uint64_t> gpu_bytes_in_use() const override { return model::gpu_bytes_in_use(); }
  std::vector<std::unique_ptr<engine::StepEngine>> load_engines(const engine::Manifest& manifest, const ModelOptions& options,
                                                                std::uint32_t context, const DeviceChoice& choice) const override {
    return load_tensor_engines(manifest, options, context, choice);
  }
};

}  // namespace
}  // namespace tts::model

extern "C" __attribute__((visibility("default"))) const tts::model::TensorBackend* TTS_TENSOR_BACKEND_ENTRY() {
  static const tts::model::TorchBackend backend;
  return &backend;
}
