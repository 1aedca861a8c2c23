#pragma once
// Runs a check under every instruction set that this processor has and the kernels were compiled for.

#include <cstdint>

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include "random_floats.h"

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

}  // namespace tts::model::ops
