#include "precision.h"

#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include "linear_targets.h"

namespace tts::model {
namespace {

using ops::KvFormat;
using ops::WeightFormat;
using ::testing::StartsWith;

TEST(ChooseFormats, TakesWhatIsAskedFor) {
  const Formats wide =
      choose_formats({.weights = NumberFormat::kFloat32, .kv = NumberFormat::kBfloat16, .sound = NumberFormat::kBfloat16});
  EXPECT_EQ(wide.weights, WeightFormat::kFloat32);
  EXPECT_EQ(wide.kv, KvFormat::kBfloat16);
  EXPECT_EQ(wide.sound, WeightFormat::kBfloat16);
  EXPECT_EQ(describe(wide), "float32 weights, bfloat16 keys and values, bfloat16 sound");
  const Formats narrow = choose_formats({.weights = NumberFormat::kBfloat16, .kv = NumberFormat::kInt8, .sound = NumberFormat::kFloat32});
  EXPECT_EQ(describe(narrow), "bfloat16 weights, int8 keys and values, float32 sound");
}

TEST(ChooseFormats, AutomaticallyTheSmallestAndForSoundWhatTheMatrixUnitsAreGoodAt) {
  for (const ops::TileKernel& kernel : ops::tile_kernels(WeightFormat::kBfloat16)) {
    ops::choose_tile_kernel(WeightFormat::kBfloat16, kernel);
    const bool tiles = kernel.name == std::string("amx");
    EXPECT_EQ(describe(choose_formats({})),
              std::string("int8 weights, int8 keys and values, ") + (tiles ? "bfloat16" : "float32") + " sound")
        << kernel.name;
  }
  ops::choose_tile_kernel(WeightFormat::kBfloat16, ops::tile_kernels(WeightFormat::kBfloat16).front());
}

TEST(ChooseFormats, RefusesWhatTheCpuHasNot) {
  EXPECT_THROW(choose_formats({.weights = NumberFormat::kFloat16}), std::runtime_error);
  EXPECT_THROW(choose_formats({.kv = NumberFormat::kFloat16}), std::runtime_error);
  EXPECT_THROW(choose_formats({.sound = NumberFormat::kFloat16}), std::runtime_error);
  EXPECT_THROW(choose_formats({.sound = NumberFormat::kInt8}), std::runtime_error);
}

TEST(InstructionSet, IsTheBestThatWasCompiledAndTheProcessorHas) {
  EXPECT_THAT(instruction_set(), StartsWith(std::string(hwy::TargetName(hwy::SupportedAndGeneratedTargets().front())) + ", bfloat16 on "));
}

}  // namespace
}  // namespace tts::model
