#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load_model.h"

namespace tts::model {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

engine::Manifest nano() { return engine::read_manifest(std::filesystem::path(TTS_SOURCE_DIR) / "models/nano"); }

ModelOptions on_device(const std::string& device) {
  ModelOptions options;
  options.max_slots = 2;
  options.device = device;
  return options;
}

std::string load_error(const engine::Manifest& manifest, const ModelOptions& options) {
  try {
    load_model(manifest, options);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(LoadModel, LoadsTheBundledVoice) {
  const engine::Manifest manifest = nano();
  ModelOptions options = on_device("cpu");
  options.max_slots = 3;
  options.max_prefill_rows = 10;
  options.compute_threads = 1;
  const LoadedModel model = load_model(manifest, options);
  ASSERT_EQ(model.voices.size(), manifest.voices.size());
  for (std::size_t i = 0; i < model.voices.size(); ++i) {
    EXPECT_EQ(model.voices[i].id, manifest.voices[i].id);
    EXPECT_EQ(model.voices[i].speaker->size(), manifest.architecture.gpt.hidden_size);
  }
  const engine::EngineInfo& info = model.engines.front()->info();
  EXPECT_EQ(info.model, "nano");
  EXPECT_EQ(info.max_slots, 3U);
  EXPECT_EQ(info.max_rows_per_step, 13U);
  EXPECT_EQ(info.max_context, manifest.max_prompt_tokens + manifest.sampling.max_steps);
  EXPECT_THAT(info.precision, ContainsRegex("^int8 weights, int8 keys and values, (bfloat16|float32) sound$"));
}

TEST(LoadModel, NumberFormatsAreTheAskedOnes) {
  ModelOptions options = on_device("cpu");
  options.precision = {.weights = NumberFormat::kBfloat16, .kv = NumberFormat::kFloat32, .sound = NumberFormat::kBfloat16};
  EXPECT_EQ(load_model(nano(), options).engines.front()->info().precision, "bfloat16 weights, float32 keys and values, bfloat16 sound");
  options.precision.sound = NumberFormat::kInt8;
  EXPECT_THAT(load_error(nano(), options), HasSubstr("the sound networks do not run in int8"));
}

TEST(LoadModel, TheDefaultContextStaysWithinTheModelsPositions) {
  engine::Manifest manifest = nano();
  manifest.max_prompt_tokens = 100000;
  const LoadedModel model = load_model(manifest, on_device("cpu"));
  EXPECT_EQ(model.engines.front()->info().max_context, manifest.architecture.gpt.max_position_embeddings);
}

TEST(LoadModel, ListsEverythingWrongAtOnce) {
  engine::Manifest manifest = nano();
  manifest.files.at("gpt").sha256.assign(64, '0');
  manifest.files.at("vocos").sha256.assign(64, '1');
  manifest.files.at("speakers").sha256.assign(64, '2');
  ModelOptions options = on_device("cpu");
  options.max_slots = 257;
  options.max_prefill_rows = 0;
  options.max_context = 2049;
  EXPECT_THAT(load_error(manifest, options),
              AllOf(HasSubstr("max_slots is 257"), HasSubstr("max_prefill_rows is 0"), HasSubstr("max_context is 2049"),
                    HasSubstr("gpt.safetensors"), HasSubstr("vocos.safetensors"), HasSubstr("speakers.safetensors")));
  options = on_device("cpu");
  options.verify_hashes = false;
  EXPECT_EQ(load_error(manifest, options), "") << "without verification the hashes do not matter";
}

TEST(LoadModel, NamesTheTensorThatDoesNotFit) {
  engine::Manifest manifest = nano();
  manifest.architecture.gpt.intermediate_size = 700;
  EXPECT_THAT(load_error(manifest, on_device("cpu")),
              AllOf(HasSubstr("layers.0.mlp.gate_proj.weight"), HasSubstr("layers.7.mlp.down_proj.weight"), Not(HasSubstr("emb_text"))));
}

TEST(LoadModel, RefusesSizesTheKernelsCannotTakeBeforeReadingWeights) {
  engine::Manifest manifest = nano();
  manifest.architecture.gpt.num_attention_heads = 3;
  EXPECT_THAT(load_error(manifest, on_device("cpu")), AllOf(HasSubstr("num_attention_heads"), Not(HasSubstr("q_proj"))));
}

TEST(LoadModel, InstancesOnTensors) {
  ModelOptions options = on_device("cpu-tensors");
  options.instances = 2;
  options.device_map = "0-3:cpu,4-7:cpu";
  options.preferred_batch_sizes = {2};
  const LoadedModel model = load_model(nano(), options);
  ASSERT_EQ(model.engines.size(), 2U);
  for (const auto& engine : model.engines) {
    EXPECT_EQ(engine->info().device, "cpu-tensors");
    EXPECT_EQ(engine->info().max_slots, 2U);
    EXPECT_EQ(engine->info().max_context, nano().max_prompt_tokens + nano().sampling.max_steps);
  }
}

TEST(LoadModel, SaysWhyADeviceCannotBeUsed) {
  EXPECT_THAT(load_error(nano(), on_device("tpu")), HasSubstr("expected auto, cpu, cuda, or a list"));
  EXPECT_THAT(load_error(nano(), on_device("cuda:250")), HasSubstr("device 'cuda:250': "));
  ModelOptions options = on_device("cpu");
  options.instances = 2;
  EXPECT_THAT(load_error(nano(), options), HasSubstr("device_map and instances are for GPUs"));
  options = on_device("cpu");
  options.device_map = "auto";
  EXPECT_THAT(load_error(nano(), options), HasSubstr("device_map and instances are for GPUs"));
  options = on_device("cpu-tensors");
  options.instances = 0;
  options.gpu_memory_fraction = 1.5;
  EXPECT_THAT(load_error(nano(), options), AllOf(HasSubstr("instances is 0"), HasSubstr("gpu_memory_fraction must be")));
  options = on_device("cpu-tensors");
  options.device_map = "0-8:cpu";
  EXPECT_THAT(load_error(nano(), options), HasSubstr("must name each of the layers 0-7 once"));
  options = on_device("cpu-tensors");
  options.precision.kv = NumberFormat::kInt8;
  EXPECT_THAT(load_error(nano(), options), HasSubstr("not int8"));
}

TEST(LoadModel, AWrongFileIsNamedOnTensorsToo) {
  engine::Manifest manifest = nano();
  manifest.architecture.gpt.intermediate_size = 700;
  EXPECT_THAT(load_error(manifest, on_device("cpu-tensors")), HasSubstr("layers.7.mlp.down_proj.weight"));
  manifest = nano();
  manifest.files.at("vocos").sha256.assign(64, '1');
  EXPECT_THAT(load_error(manifest, on_device("cpu-tensors")), HasSubstr("vocos.safetensors"));
}

// A machine with one GPU, which fails when a model is loaded.
class BrokenGpu final : public TensorBackend {
 public:
  std::uint32_t count_gpus() const noexcept override { return 1; }
  std::vector<std::uint64_t> gpu_bytes_in_use() const override { return {}; }
  std::vector<std::unique_ptr<engine::StepEngine>> load_engines(const engine::Manifest&, const ModelOptions&, std::uint32_t,
                                                                const DeviceChoice&) const override {
    throw std::runtime_error("no kernel image is available");
  }
};

std::string device_or_error(const ModelOptions& options, const GpuSupport& gpus) {
  try {
    return load_model(nano(), options, gpus).engines.front()->info().device;
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(LoadModel, AutoIsTheCpuWhereGpusDoNotWork) {
  const BrokenGpu broken;
  const GpuSupport gpus{.built = true, .driver = true, .backend = [&]() -> const TensorBackend& { return broken; }};
  EXPECT_EQ(device_or_error(on_device("auto"), gpus), "cpu");
  EXPECT_THAT(device_or_error(on_device("cuda"), gpus), HasSubstr("no kernel image is available"));
  ModelOptions only_gpus_can = on_device("auto");
  only_gpus_can.instances = 2;
  EXPECT_THAT(device_or_error(only_gpus_can, gpus), HasSubstr("no kernel image is available"));
  only_gpus_can = on_device("auto");
  only_gpus_can.device_map = "auto";
  EXPECT_THAT(device_or_error(only_gpus_can, gpus), HasSubstr("no kernel image is available"));
}

TEST(LoadModel, AutoIsTheCpuWhereTheirPartIsMissing) {
  const GpuSupport gpus{.built = true, .driver = true, .backend = []() -> const TensorBackend& { throw std::runtime_error("missing"); }};
  EXPECT_EQ(device_or_error(on_device("auto"), gpus), "cpu");
  EXPECT_THAT(device_or_error(on_device("cuda"), gpus), HasSubstr("missing"));
}

TEST(LoadModel, NothingIsLoadedForGpusWithoutADriver) {
  bool asked = false;
  const GpuSupport gpus{.built = true, .driver = false, .backend = [&]() -> const TensorBackend& {
                          asked = true;
                          throw std::runtime_error("missing");
                        }};
  EXPECT_EQ(device_or_error(on_device("auto"), gpus), "cpu");
  EXPECT_THAT(device_or_error(on_device("cuda"), gpus), HasSubstr("no CUDA GPU was found"));
  EXPECT_FALSE(asked);
}

TEST(LoadModel, AMissingRoleIsNamed) {
  engine::Manifest manifest = nano();
  manifest.files.erase("embed");
  EXPECT_THAT(load_error(manifest, on_device("cpu")), HasSubstr("embed"));
}

}  // namespace
}  // namespace tts::model
