#pragma once
// What the tensor engine asks of a device beyond tensors: work queues, recorded work, host memory the device reads directly.
// CUDA lives behind this header (cuda/); on the CPU operators run where they are called, and order comes by itself.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <c10/util/FunctionRef.h>

namespace tts::model {

using Work = c10::function_ref<void()>;

// Operators recorded once, to be run again on the same tensors. Belongs to the queue that recorded it.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  virtual void replay() = 0;  // inside Queue::run()
};

// Device work in order; different queues overlap. Thread: one at a time.
class Queue {
 public:
  virtual ~Queue() = default;

  // Calls `work`; the operators in it are queued here and may run later.
  virtual void run(Work work) = 0;

  // The rest: inside run().

  // Records operators that all run on `device`. Calls `work` several times, also for real, so with the inputs as they stand it must
  // change nothing that matters. What it creates is reused by every recording of the queue: results leave through tensors that exist.
  virtual std::unique_ptr<RecordedWork> record(c10::Device device, std::function<void()> work) = 0;

  // `work` may run beside what follows, until rejoin(). Not nested.
  virtual void beside(Work work) = 0;
  virtual void rejoin() = 0;

  // wait() blocks until everything queued before the last mark() is done. Throws when the device failed.
  virtual void mark() = 0;
  virtual void wait() = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Work is only queued when a call returns, so that it pays to queue the next step early.
  virtual bool runs_behind() const noexcept = 0;

  // For work on these devices; mark() and wait() look at the first.
  virtual std::unique_ptr<Queue> make_queue(std::span<const c10::Device> devices) = 0;

  // Zeroed host memory for copies that the host does not wait for.
  virtual at::Tensor host_buffer(at::IntArrayRef shape, at::ScalarType type) = 0;

  // Waits until everything on the devices is done, whatever queue it is in or none, and gives cached memory back. Throws when a device
  // failed.
  virtual void settle() = 0;
};

std::unique_ptr<Runtime> make_cpu_runtime();

// Runs `call`; libtorch's errors come out as std::runtime_error without the addresses of its stack.
template <class Call>
decltype(auto) in_plain_words(Call&& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

// --- CUDA; a build without it has no GPUs, and the rest may not be called ---

bool built_with_cuda() noexcept;
std::uint32_t count_gpus() noexcept;  // that work; touches none of them

struct Gpu {
  int major = 0, minor = 0;  // compute capability
  std::uint64_t total_bytes = 0, free_bytes = 0;
};
Gpu describe_gpu(std::uint32_t index);

// Caps what this process takes of each GPU, (0, 1] of its memory; beyond, an operator throws.
void limit_gpu_memory(std::span<const c10::Device> devices, double fraction);

// Bytes that this process holds of each GPU, by index; empty before a GPU is used. Any thread.
std::vector<std::uint64_t> gpu_bytes_in_use();

std::unique_ptr<Runtime> make_cuda_runtime(std::span<const c10::Device> devices);

}  // namespace tts::model
