#include "ops/aligned_buffer.h"

#include <limits>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace tts::model::ops {

AlignedBuffer::AlignedBuffer(std::size_t floats, PageAdvice advice) : size_(floats) {
  if (floats == 0) return;
  if (floats > std::numeric_limits<std::size_t>::max() / sizeof(float)) throw std::bad_alloc();
  void* pages = ::mmap(nullptr, floats * sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  if (advice == PageAdvice::kHuge) ::madvise(pages, floats * sizeof(float), MADV_HUGEPAGE);  // best effort: speed only
  data_ = static_cast<float*>(pages);
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_ * sizeof(float));
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tts::model::ops
