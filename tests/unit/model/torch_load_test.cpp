#include <filesystem>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch/load_tensor_engines.h"

namespace tts::model {
namespace {

constexpr DeviceAbilities kHostAbilities{.gpu = false, .bfloat16 = true}, kOldGpu{.gpu = true, .bfloat16 = false},
    kNewGpu{.gpu = true, .bfloat16 = true};

TEST(ChooseTensorFormats, AutomaticOnesByDevice) {
  const TensorFormats host = choose_tensor_formats({}, kHostAbilities), old_gpu = choose_tensor_formats({}, kOldGpu),
                      new_gpu = choose_tensor_formats({}, kNewGpu);
  EXPECT_EQ(host.compute, at::kFloat);
  EXPECT_EQ(host.kv, at::kFloat);
  EXPECT_EQ(host.sound, at::kFloat);
  EXPECT_EQ(old_gpu.compute, at::kHalf);
  EXPECT_EQ(old_gpu.kv, at::kHalf);
  EXPECT_EQ(new_gpu.compute, at::kBFloat16);
  EXPECT_EQ(new_gpu.kv, at::kBFloat16);
  EXPECT_EQ(new_gpu.sound, at::kHalf);
  for (const TensorFormats& formats : {host, old_gpu, new_gpu}) EXPECT_FALSE(formats.int8_weights);
}

TEST(ChooseTensorFormats, AsAsked) {
  const TensorFormats int8 = choose_tensor_formats({.weights = NumberFormat::kInt8}, kNewGpu);
  EXPECT_TRUE(int8.int8_weights);
  EXPECT_EQ(int8.compute, at::kBFloat16);
  EXPECT_EQ(int8.kv, at::kBFloat16);
  const TensorFormats mixed =
      choose_tensor_formats({.weights = NumberFormat::kFloat16, .kv = NumberFormat::kFloat32, .sound = NumberFormat::kBfloat16}, kNewGpu);
  EXPECT_EQ(mixed.compute, at::kHalf);
  EXPECT_EQ(mixed.kv, at::kFloat);
  EXPECT_EQ(mixed.sound, at::kBFloat16);
}

TEST(ChooseTensorFormats, WhatIsNotToBeHad) {
  EXPECT_THROW(choose_tensor_formats({.kv = NumberFormat::kInt8}, kNewGpu), std::runtime_error);
  EXPECT_THROW(choose_tensor_formats({.sound = NumberFormat::kInt8}, kNewGpu), std::runtime_error);
  EXPECT_THROW(choose_tensor_formats({.weights = NumberFormat::kBfloat16}, kOldGpu), std::runtime_error);
  EXPECT_NO_THROW(choose_tensor_formats({.weights = NumberFormat::kBfloat16}, kNewGpu));
}

// The planner's sizes against those of the bundled voice's files, which hold half precision.
TEST(EstimateBytes, AgreesWithTheFiles) {
  const engine::Manifest manifest = engine::read_manifest(std::filesystem::path(TTS_SOURCE_DIR) / "models/nano");
  const engine::GptSizes& gpt = manifest.architecture.gpt;
  const double stored = static_cast<double>(std::filesystem::file_size(manifest.files.at("gpt").path));
  const TensorFormats half{.compute = at::kHalf, .int8_weights = false, .kv = at::kHalf, .sound = at::kHalf};
  const ModelBytes bytes = estimate_bytes(manifest.architecture, false, half, 0, 0, 1);
  EXPECT_EQ(bytes.layers, gpt.num_hidden_layers);
  EXPECT_NEAR(static_cast<double>(bytes.layers * bytes.layer) / stored, 1.0, 0.02);
  TensorFormats int8 = half;
  int8.int8_weights = true;
  EXPECT_EQ(estimate_bytes(manifest.architecture, false, int8, 0, 0, 1).layer * 2, bytes.layer);

  // Keys and values of 4 slots of 128 positions (100, in whole units) and one for nobody; two engines.
  const std::uint64_t cache = 2ULL * 4 * 129 * 2 * gpt.hidden_size * 2;
  EXPECT_EQ(estimate_bytes(manifest.architecture, false, half, 4, 100, 2).layer - bytes.layer, cache);

  EXPECT_EQ(estimate_bytes(manifest.architecture, false, half, 4, 100, 2).scratch,
            2 * estimate_bytes(manifest.architecture, false, half, 4, 100, 1).scratch)
      << "each engine has its own";
  EXPECT_GT(bytes.common, bytes.scratch);
  EXPECT_GT(bytes.common,
            std::filesystem::file_size(manifest.files.at("decoder").path) + std::filesystem::file_size(manifest.files.at("vocos").path));
  EXPECT_GT(estimate_bytes(manifest.architecture, true, half, 4, 100, 1).common,
            estimate_bytes(manifest.architecture, false, half, 4, 100, 1).common);
}

}  // namespace
}  // namespace tts::model
