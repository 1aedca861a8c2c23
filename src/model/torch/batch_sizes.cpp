#include "torch/batch_sizes.h"

#include <algorithm>
#include <cassert>

namespace tts::model {

std::vector<std::uint32_t> make_batch_sizes(std::span<const std::uint32_t> preferred, std::uint32_t smallest, std::uint32_t largest) {
  std::vector<std::uint32_t> sizes(preferred.begin(), preferred.end());
  if (sizes.empty()) {
    for (std::uint64_t size = smallest; size < largest; size *= 2) sizes.push_back(static_cast<std::uint32_t>(size));
  }
  std::erase_if(sizes, [&](std::uint32_t size) { return size == 0 || size > largest; });
  sizes.push_back(largest);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::uint32_t batch_size_for(std::span<const std::uint32_t> sizes, std::uint32_t count) {
  const auto size = std::lower_bound(sizes.begin(), sizes.end(), count);
  assert(size != sizes.end());
  return *size;
}

}  // namespace tts::model
