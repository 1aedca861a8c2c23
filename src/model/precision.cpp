#include "precision.h"

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string_view>

#include <hwy/highway.h>

#include "ops/tile_kernels.h"

namespace tts::model {
namespace {

template <class Format>
Format format_of(NumberFormat number, Format automatic) {
  switch (number) {
    case NumberFormat::kAuto: break;
    case NumberFormat::kFloat32: return Format::kFloat32;
    case NumberFormat::kBfloat16: return Format::kBfloat16;
    case NumberFormat::kFloat16: throw std::runtime_error("float16 is for GPUs; on the CPU choose bfloat16, int8 or float32");
    case NumberFormat::kInt8: return Format::kInt8;
  }
  return automatic;
}

template <class Format>
std::string name(Format format) {
  constexpr std::array<const char*, 3> kNames{"float32", "bfloat16", "int8"};
  return kNames[static_cast<std::size_t>(format)];
}

}  // namespace

Formats choose_formats(const Precision& precision) {
  if (precision.sound == NumberFormat::kInt8) throw std::runtime_error("the sound networks do not run in int8; choose bfloat16 or float32");
  // A language model is bound by reading weights, keys and values: the smallest format is the fastest everywhere. The sound networks are
  // bound by arithmetic, where bfloat16 wins with matrix tiles only.
  const bool tiles = std::string_view(ops::tile_kernel(ops::WeightFormat::kBfloat16).name) == "amx";
  return {.weights = format_of(precision.weights, ops::WeightFormat::kInt8),
          .kv = format_of(precision.kv, ops::KvFormat::kInt8),
          .sound = format_of(precision.sound, tiles ? ops::WeightFormat::kBfloat16 : ops::WeightFormat::kFloat32)};
}

std::string describe(const Formats& formats) {
  return name(formats.weights) + " weights, " + name(formats.kv) + " keys and values, " + name(formats.sound) + " sound";
}

std::string instruction_set() {
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;  // of the processor, and compiled
  return std::string(hwy::TargetName(targets & -targets)) + ", bfloat16 on " + ops::tile_kernel(ops::WeightFormat::kBfloat16).name + ", int8 on " +
         ops::tile_kernel(ops::WeightFormat::kInt8).name;
}

}  // namespace tts::model
