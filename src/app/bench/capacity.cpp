#include "capacity.h"

#include <algorithm>
#include <cassert>

namespace tts::bench {
namespace {

std::size_t resolution(std::size_t streams) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(kCapacityResolution * static_cast<double>(streams)));
}

}  // namespace

std::size_t find_capacity(std::size_t most, const std::function<bool(std::size_t)>& quick,
                          const std::function<bool(std::size_t)>& thorough) {
  assert(most >= 1);
  std::size_t good = 0, bad = most + 1;
  for (std::size_t streams = 1; good < most; streams = std::min(2 * streams, most)) {
    if (!quick(streams)) {
      bad = streams;
      break;
    }
    good = streams;
  }
  while (bad - good > resolution(good)) {
    const auto middle = good + (bad - good) / 2;
    (quick(middle) ? good : bad) = middle;
  }
  while (good > 0 && !thorough(good)) good -= resolution(good);
  return good;
}

}  // namespace tts::bench
