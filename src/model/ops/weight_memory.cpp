#include "ops/weight_memory.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace tts::model::ops {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLargePage = std::size_t{2} << 20;
constexpr std::size_t kSlabBytes = std::size_t{64} << 20;  // of address space; pages appear when first touched

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

class WeightMemory::Slab {
 public:
  explicit Slab(std::size_t bytes) : mapped_(round_up(bytes, kLargePage) + kLargePage) {
    pages_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages_ == MAP_FAILED) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(pages_);
    next_ = static_cast<std::byte*>(pages_) + (round_up(address, kLargePage) - address);
    end_ = next_ + round_up(bytes, kLargePage);
    ::madvise(next_, static_cast<std::size_t>(end_ - next_), MADV_HUGEPAGE);  // best effort: speed only
  }
  ~Slab() { ::munmap(pages_, mapped_); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // `bytes` is a multiple of the alignment; null when they do not fit.
  std::byte* take(std::size_t bytes) noexcept {
    if (static_cast<std::size_t>(end_ - next_) < bytes) return nullptr;
    return std::exchange(next_, next_ + bytes);
  }

  // Whole pages inside; best effort.
  static void give_back(std::byte* data, std::size_t bytes) noexcept {
    const std::uintptr_t page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)), address = reinterpret_cast<std::uintptr_t>(data);
    const std::uintptr_t begin = round_up(address, page), end = (address + bytes) / page * page;
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }

 private:
  std::size_t mapped_;
  void* pages_;
  std::byte *next_, *end_;
};

WeightMemory::WeightMemory(std::size_t bytes) : size_(bytes) {
  static std::mutex mutex;
  static std::weak_ptr<Slab> current;
  if (bytes == 0) return;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) throw std::bad_alloc();
  const std::size_t rounded = round_up(bytes, kAlignment);
  const std::lock_guard lock(mutex);
  std::shared_ptr<Slab> slab = current.lock();
  std::byte* data = slab == nullptr ? nullptr : slab->take(rounded);
  if (data == nullptr) {
    slab = std::make_shared<Slab>(std::max(rounded, kSlabBytes));
    data = slab->take(rounded);
    current = slab;
  }
  data_ = std::shared_ptr<std::byte>(data, [slab, rounded](std::byte* freed) { Slab::give_back(freed, rounded); });
}

}  // namespace tts::model::ops
