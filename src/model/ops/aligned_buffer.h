#pragma once
// A fixed block of zeroed floats straight from the kernel: page aligned, pages appear when first touched.

#include <cstddef>
#include <cstdint>

namespace tts::model::ops {

enum class PageAdvice : std::uint8_t {
  kDefault,
  kHuge,  // large pages where the kernel has them; for memory that is read from end to end
};

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws std::bad_alloc. floats == 0 holds nothing.
  explicit AlignedBuffer(std::size_t floats, PageAdvice advice = PageAdvice::kDefault);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  float* data() noexcept { return data_; }
  const float* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  float* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tts::model::ops
