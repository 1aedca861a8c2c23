#include <utility>

#include <ATen/ops/zeros.h>

#include "torch/runtime.h"

namespace tts::model {
namespace {

class CpuRecord final : public RecordedWork {
 public:
  explicit CpuRecord(std::function<void()> work) : work_(std::move(work)) {}
  void replay() override { work_(); }

 private:
  std::function<void()> work_;
};

class CpuQueue final : public Queue {
 public:
  void run(Work work) override { work(); }
  std::unique_ptr<RecordedWork> record(c10::Device, std::function<void()> work) override {
    work();  // as a device would, so that tests see what recording does to the state
    return std::make_unique<CpuRecord>(std::move(work));
  }
  void beside(Work work) override { work(); }
  void rejoin() override {}
  void mark() override {}
  void wait() override {}
};

class CpuRuntime final : public Runtime {
 public:
  bool runs_behind() const noexcept override { return false; }
  std::unique_ptr<Queue> make_queue(std::span<const c10::Device>) override { return std::make_unique<CpuQueue>(); }
  at::Tensor host_buffer(at::IntArrayRef shape, at::ScalarType type) override { return at::zeros(shape, at::TensorOptions().dtype(type)); }
  void settle() override {}
};

}  // namespace

std::unique_ptr<Runtime> make_cpu_runtime() { return std::make_unique<CpuRuntime>(); }

}  // namespace tts::model
