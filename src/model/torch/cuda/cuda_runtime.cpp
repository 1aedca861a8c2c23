#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "torch/runtime.h"

namespace tts::model {
namespace {

using c10::cuda::CUDAStream;

std::atomic<bool> initialised{false};

constexpr int kWarmUps = 2;  // runs before a recording: libraries choose kernels and take their workspaces

// One engine's recording breaks when another engine waits for the whole device.
std::mutex device_wide;

class CudaRecord final : public RecordedWork {
 public:
  // `rejoin` ends what `work` may have begun beside itself: a recording with loose ends cannot be ended. When anything fails the first
  // failure is thrown, and stream, allocators and pool are as if nothing had been recorded.
  CudaRecord(c10::Device device, at::cuda::MempoolId_t pool, Work work, Work rejoin) {
    const std::scoped_lock alone(device_wide);
    const c10::cuda::CUDAGuard guard(device);
    std::exception_ptr failure;
    attempt(failure, [&] {
      // Other engines' threads may allocate meanwhile: only this thread is forbidden to.
      graph_.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
      work();
    });
    attempt(failure, rejoin);
    attempt(failure, [&] { graph_.capture_end(); });
    if (!failure) return;
    // A capture_end() that failed early has left the allocators in the recording's pool, where the next recording would be refused. One
    // that did not makes these throw.
    attempt(failure, [&] {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(device.index(), pool);
      c10::cuda::CUDACachingAllocator::releasePool(device.index(), pool);
    });
    attempt(failure, [&] {
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(pool);
      at::getHostAllocator(at::kCUDA)->release_pool(pool);
    });
    std::rethrow_exception(failure);
  }

  void replay() override { graph_.replay(); }

 private:
  static void attempt(std::exception_ptr& failure, Work part) {
    try {
      part();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }

  at::cuda::CUDAGraph graph_;
};

// Layers on the host in a model whose other layers are on GPUs.
class HostRecord final : public RecordedWork {
 public:
  explicit HostRecord(std::function<void()> work) : work_(std::move(work)) {}
  void replay() override { work_(); }

 private:
  std::function<void()> work_;
};

class CudaQueue final : public Queue {
 public:
  explicit CudaQueue(std::span<const c10::Device> devices) {
    for (const c10::Device device : devices) {
      if (!device.is_cuda()) continue;
      streams_.push_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index()));
      pools_.push_back(at::cuda::graph_pool_handle());
    }
    if (streams_.empty()) throw std::runtime_error("a CUDA queue needs a GPU");
    side_.emplace(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, streams_.front().device_index()));
  }

  void run(Work work) override {
    const c10::cuda::CUDAMultiStreamGuard streams(streams_);
    const c10::cuda::CUDAGuard device(streams_.front().device());
    forked_ = false;  // by work that failed, and has been settled since
    work();
  }

  std::unique_ptr<RecordedWork> record(c10::Device device, std::function<void()> work) override {
    if (!device.is_cuda()) return std::make_unique<HostRecord>(std::move(work));
    for (int i = 0; i < kWarmUps; ++i) work();
    stream_on(device).synchronize();
    return std::make_unique<CudaRecord>(device, pool_on(device), work, [this] { rejoin(); });
  }

  void beside(Work work) override {
    fork_.record(c10::cuda::getCurrentCUDAStream(side_->device_index()));
    fork_.block(*side_);
    forked_ = true;
    const c10::cuda::CUDAStreamGuard guard(*side_);
    work();
  }
  void rejoin() override {
    if (!std::exchange(forked_, false)) return;
    join_.record(*side_);
    join_.block(c10::cuda::getCurrentCUDAStream(side_->device_index()));
  }

  void mark() override { mark_.record(streams_.front()); }
  void wait() override { mark_.synchronize(); }

 private:
  std::size_t place_of(c10::Device device) const {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i].device() == device) return i;
    }
    throw std::runtime_error("the queue has no stream on " + device.str());
  }
  const CUDAStream& stream_on(c10::Device device) const { return streams_[place_of(device)]; }
  at::cuda::MempoolId_t pool_on(c10::Device device) const { return pools_[place_of(device)]; }

  std::vector<CUDAStream> streams_;  // one a GPU
  std::vector<at::cuda::MempoolId_t> pools_;
  std::optional<CUDAStream> side_;
  at::cuda::CUDAEvent fork_, join_, mark_;
  bool forked_ = false;  // something runs beside
};

class CudaRuntime final : public Runtime {
 public:
  explicit CudaRuntime(std::span<const c10::Device> devices) : devices_(devices.begin(), devices.end()) {}

  bool runs_behind() const noexcept override { return true; }
  std::unique_ptr<Queue> make_queue(std::span<const c10::Device> devices) override { return std::make_unique<CudaQueue>(devices); }
  at::Tensor host_buffer(at::IntArrayRef shape, at::ScalarType type) override {
    return at::zeros(shape, at::TensorOptions().dtype(type).pinned_memory(true));
  }
  void settle() override {
    const std::scoped_lock alone(device_wide);
    for (const c10::Device device : devices_) {
      if (!device.is_cuda()) continue;
      const c10::cuda::CUDAGuard guard(device);
      c10::cuda::device_synchronize();
    }
    c10::cuda::CUDACachingAllocator::emptyCache();
  }

 private:
  std::vector<c10::Device> devices_;
};

void initialise() {
  if (initialised) return;
  at::globalContext().lazyInitDevice(c10::kCUDA);
  at::globalContext().setSDPUseCuDNN(false);  // its plans depend on the shape and may not be made while recording
  // Sums stay float32 until they are complete, as they do on the CPU, where the number formats were measured.
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  at::globalContext().setAllowFP16ReductionCuBLAS(false);
  initialised = true;
}

}  // namespace

bool built_with_cuda() noexcept { return true; }
std::uint32_t count_gpus() noexcept { return static_cast<std::uint32_t>(c10::cuda::device_count()); }

Gpu describe_gpu(std::uint32_t index) {
  initialise();
  const auto device = static_cast<c10::DeviceIndex>(index);
  const cudaDeviceProp* const properties = at::cuda::getDeviceProperties(device);
  const auto [free, total] = c10::cuda::CUDACachingAllocator::get()->getMemoryInfo(device);
  return {.major = properties->major, .minor = properties->minor, .total_bytes = total, .free_bytes = free};
}

void limit_gpu_memory(std::span<const c10::Device> devices, double fraction) {
  initialise();
  for (const c10::Device device : devices) {
    if (device.is_cuda()) c10::cuda::CUDACachingAllocator::setMemoryFraction(fraction, device.index());
  }
}

std::vector<std::uint64_t> gpu_bytes_in_use() {
  std::vector<std::uint64_t> bytes;
  if (!initialised) return bytes;
  for (c10::DeviceIndex i = 0; i < c10::cuda::device_count(); ++i) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(i);
    bytes.push_back(static_cast<std::uint64_t>(stats.reserved_bytes[0].current));  // [0]: of all pools together
  }
  return bytes;
}

std::unique_ptr<Runtime> make_cuda_runtime(std::span<const c10::Device> devices) {
  initialise();
  return std::make_unique<CudaRuntime>(devices);
}

}  // namespace tts::model
