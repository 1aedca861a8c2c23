#pragma once
// The number formats of a loaded model.

#include <string>

#include "tts/model/model.h"

#include "ops/attention.h"
#include "ops/weight_format.h"

namespace tts::model {

struct Formats {
  ops::WeightFormat weights = ops::WeightFormat::kFloat32;  // of the language model
  ops::KvFormat kv = ops::KvFormat::kFloat32;
  ops::WeightFormat sound = ops::WeightFormat::kFloat32;
};

// kAuto becomes a format. Throws std::runtime_error for a combination that does not exist.
Formats choose_formats(const Precision& precision);

std::string describe(const Formats& formats);  // "int8 weights, int8 keys and values, bfloat16 sound"
std::string instruction_set();                 // what the kernels use on this processor: "AVX3, bfloat16 on amx, int8 on amx"

}  // namespace tts::model
