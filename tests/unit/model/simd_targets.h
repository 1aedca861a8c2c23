#pragma once
// Runs a check under every instruction set that this processor has and the kernels were compiled for.

#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace tts::model::ops {

template <class Check>
void for_each_simd_target(Check&& check) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    check();
  }
  hwy::GetChosenTarget().DeInit();
}

inline std::vector<float> random_floats(std::size_t n, std::uint32_t seed, float range = 1.0F) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(-range, range);
  std::vector<float> values(n);
  for (float& value : values) value = distribution(engine);
  return values;
}

}  // namespace tts::model::ops
