// Stands in for cuda_runtime.cpp when libtorch has no CUDA.
#include <stdexcept>

#include "torch/runtime.h"

namespace tts::model {

bool built_with_cuda() noexcept { return false; }
std::vector<Gpu> list_gpus() { return {}; }
void limit_gpu_memory(std::span<const c10::Device>, double) {}
std::vector<std::uint64_t> gpu_bytes_in_use() { return {}; }
std::unique_ptr<Runtime> make_cuda_runtime(std::span<const c10::Device>) { throw std::runtime_error("this build of libtorch has no CUDA"); }

}  // namespace tts::model
