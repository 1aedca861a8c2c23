#pragma once
// Memory for packed weights. Matrices that are made one after the other lie one behind the other in large pages, so that a pass over a
// model's weights is one sweep over memory and small matrices have large pages too.

#include <cstddef>
#include <memory>

namespace tts::model::ops {

class WeightMemory {
 public:
  WeightMemory() = default;
  // Zeroed and aligned to a cache line. Throws std::bad_alloc. Thread-safe. Freed memory goes back to the kernel at once, whatever its
  // neighbours do; its addresses when the last of them is gone.
  explicit WeightMemory(std::size_t bytes);

  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }

 private:
  class Slab;

  std::shared_ptr<std::byte> data_;  // holds its slab, which neighbours share
  std::size_t size_ = 0;
};

}  // namespace tts::model::ops
