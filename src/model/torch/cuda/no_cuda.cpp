// Stands in for cuda_runtime.cpp when libtorch has no CUDA.
#include <stdexcept>

#include "torch/runtime.h"

namespace tts::model {

namespace {

[[noreturn]] void no_cuda() { throw std::logic_error("this build of libtorch has no CUDA"); }

}  // namespace

bool built_with_cuda() noexcept { return false; }
std::uint32_t count_gpus() noexcept { return 0; }
Gpu describe_gpu(std::uint32_t) { no_cuda(); }
void limit_gpu_memory(std::span<const c10::Device>, double) { no_cuda(); }
std::vector<std::uint64_t> gpu_bytes_in_use() { return {}; }
std::unique_ptr<Runtime> make_cuda_runtime(std::span<const c10::Device>) { no_cuda(); }

}  // namespace tts::model
