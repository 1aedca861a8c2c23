#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "torch/device_plan.h"

namespace tts::model {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1U << 20;
constexpr AvailableGpus kNotBuilt{}, kNone{.built = true, .count = 0}, kTwo{.built = true, .count = 2};

constexpr DeviceName gpu(std::uint32_t index) { return {.gpu = true, .index = index}; }

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(ChooseDevices, AutoTakesWhatThereIs) {
  for (const AvailableGpus& none : {kNotBuilt, kNone}) {
    const DeviceChoice choice = choose_devices("auto", none);
    EXPECT_FALSE(choice.tensors);
    EXPECT_THAT(choice.devices, ElementsAre(kHost));
  }
  const DeviceChoice choice = choose_devices("auto", kTwo);
  EXPECT_TRUE(choice.tensors);
  EXPECT_THAT(choice.devices, ElementsAre(gpu(0), gpu(1)));
}

TEST(ChooseDevices, CpuIsAlwaysThere) {
  EXPECT_FALSE(choose_devices("cpu", kTwo).tensors);
  EXPECT_TRUE(choose_devices("cpu-tensors", kNotBuilt).tensors);
  EXPECT_THAT(choose_devices("cpu-tensors", kTwo).devices, ElementsAre(kHost));
}

TEST(ChooseDevices, GpusByName) {
  EXPECT_THAT(choose_devices("cuda", kTwo).devices, ElementsAre(gpu(0), gpu(1)));
  EXPECT_THAT(choose_devices("cuda:1", kTwo).devices, ElementsAre(gpu(1)));
  EXPECT_THAT(choose_devices("cuda:1,cuda:0", kTwo).devices, ElementsAre(gpu(1), gpu(0)));
}

TEST(ChooseDevices, SaysWhatIsWrong) {
  EXPECT_THAT(error_of([] { choose_devices("cuda", kNotBuilt); }), HasSubstr("this build of libtorch has no CUDA"));
  EXPECT_THAT(error_of([] { choose_devices("cuda:0", kNone); }), HasSubstr("no CUDA GPU was found"));
  EXPECT_THAT(error_of([] { choose_devices("cuda:2", kTwo); }), HasSubstr("there is no cuda:2; this machine has cuda:0 to cuda:1"));
  EXPECT_THAT(error_of([] { choose_devices("cuda:0,cuda:0", kTwo); }), AllOf(HasSubstr("named twice"), HasSubstr("instances")));
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:0,", "cpu,cuda:0", "cuda:99999999999", "CUDA"}) {
    EXPECT_THAT(error_of([&] { choose_devices(text, kTwo); }), HasSubstr("expected auto, cpu, cuda, or a list")) << text;
  }
}

constexpr ModelBytes kModel{.layers = 20, .layer = 100 * kMiB, .common = 500 * kMiB, .scratch = 50 * kMiB};

std::vector<DeviceMemory> memory(std::initializer_list<std::uint64_t> mebibytes) {
  std::vector<DeviceMemory> devices;
  for (const std::uint64_t size : mebibytes) devices.push_back({gpu(static_cast<std::uint32_t>(devices.size())), size * kMiB});
  return devices;
}

TEST(PlanLayers, WithoutAMapOneDeviceHoldsAll) {
  EXPECT_THAT(plan_layers("", kModel, memory({2500, 9000})), ElementsAre(LayerRange{0, 20, gpu(0)}));
  EXPECT_THAT(
      error_of([] {
        plan_layers("", kModel, memory({2499, 9000}));
      }),
      AllOf(HasSubstr("20 layers of 100 MiB and 500 MiB on the first device, against cuda:0 2499 MiB"), HasSubstr("device_map auto")));
  EXPECT_THAT(error_of([] { plan_layers("", kModel, memory({400})); }), HasSubstr("does not fit"));
}

TEST(PlanLayers, AutoFillsInOrderAndSpillsToTheHost) {
  EXPECT_THAT(plan_layers("auto", kModel, memory({9000, 9000})), ElementsAre(LayerRange{0, 20, gpu(0)}));
  EXPECT_THAT(plan_layers("auto", kModel, memory({1500, 9000})), ElementsAre(LayerRange{0, 10, gpu(0)}, LayerRange{10, 10, gpu(1)}));
  EXPECT_THAT(plan_layers("auto", kModel, memory({599, 350})), ElementsAre(LayerRange{0, 3, gpu(1)}, LayerRange{3, 17, kHost}));
  EXPECT_THAT(plan_layers("auto", kModel, memory({599, 349})), ElementsAre(LayerRange{0, 2, gpu(1)}, LayerRange{2, 18, kHost}))
      << "a further device needs scratch too";
  EXPECT_THAT(error_of([] { plan_layers("auto", kModel, memory({499, 9000})); }), HasSubstr("does not fit"));
}

TEST(PlanLayers, BalancedGoesByMemory) {
  EXPECT_THAT(plan_layers("balanced", kModel, memory({4500, 4000})), ElementsAre(LayerRange{0, 10, gpu(0)}, LayerRange{10, 10, gpu(1)}));
  EXPECT_THAT(plan_layers("balanced", kModel, memory({2500, 6000})), ElementsAre(LayerRange{0, 5, gpu(0)}, LayerRange{5, 15, gpu(1)}));
  EXPECT_THAT(plan_layers("balanced", kModel, memory({2500})), ElementsAre(LayerRange{0, 20, gpu(0)}));
  EXPECT_THAT(plan_layers("balanced", kModel, memory({1150, 650, 650, 650})),
              ElementsAre(LayerRange{0, 5, gpu(0)}, LayerRange{5, 5, gpu(1)}, LayerRange{10, 5, gpu(2)}, LayerRange{15, 5, gpu(3)}));
  EXPECT_THAT(error_of([] {
                plan_layers("balanced", kModel, memory({1000, 1000}));
              }),
              AllOf(HasSubstr("does not fit"), HasSubstr("500 MiB on the first device, 50 MiB on others"), HasSubstr("cuda:1 1000 MiB")));
}

// Whatever the memory: every layer once, in order, none beyond what its device holds.
TEST(PlanLayers, BalancedIsAlwaysComplete) {
  for (std::uint64_t first = 500; first <= 2600; first += 70) {
    for (std::uint64_t second = 0; second <= 2100; second += 90) {
      for (const std::uint64_t third : {0, 250, 730}) {
        const std::vector<DeviceMemory> devices = memory({first, second, third});
        if ((first - 500) / 100 + (std::max<std::uint64_t>(second, 50) - 50) / 100 + (std::max<std::uint64_t>(third, 50) - 50) / 100 < 20) {
          EXPECT_THAT(error_of([&] { plan_layers("balanced", kModel, devices); }), HasSubstr("does not fit"));
          continue;
        }
        std::uint32_t next = 0;
        for (const LayerRange& range : plan_layers("balanced", kModel, devices)) {
          EXPECT_EQ(range.first, next);
          EXPECT_LE(range.count * kModel.layer + (range.device.index == 0 ? kModel.common : kModel.scratch),
                    devices[range.device.index].bytes);
          next += range.count;
        }
        EXPECT_EQ(next, 20U) << first << ", " << second << ", " << third;
      }
    }
  }
}

TEST(PlanLayers, AsWritten) {
  EXPECT_THAT(plan_layers("0-9:cuda:0,10-19:cuda:1", kModel, memory({2000, 2000})),
              ElementsAre(LayerRange{0, 10, gpu(0)}, LayerRange{10, 10, gpu(1)}));
  EXPECT_THAT(plan_layers("19:cpu,0-18:cuda:1", kModel, memory({500, 2000})),
              ElementsAre(LayerRange{0, 19, gpu(1)}, LayerRange{19, 1, kHost}));
  const std::vector<DeviceMemory> host{{kHost, 0}};
  EXPECT_THAT(plan_layers("0-3:cpu,4-19:cpu", kModel, host), ElementsAre(LayerRange{0, 4, kHost}, LayerRange{4, 16, kHost}));
}

TEST(PlanLayers, AsWrittenSaysWhatIsWrong) {
  const auto error = [](const char* map) { return error_of([&] { plan_layers(map, kModel, memory({9000, 900})); }); };
  for (const char* map : {"0-9:cuda:0", "0-9:cuda:0,11-19:cuda:1", "0-10:cuda:0,10-19:cuda:0", "0-20:cuda:0", "0-4294967294:cuda:0"}) {
    EXPECT_THAT(error(map), HasSubstr("must name each of the layers 0-19 once")) << map;
  }
  for (const char* map : {"0-9", "x-9:cuda:0", "9-0:cuda:0", "0-9:gpu", "0-19:cuda:0,", ":cuda:0", "0-4294967295:cuda:0", "Auto"}) {
    EXPECT_THAT(error(map), HasSubstr("write layers and device as in 0-9:cuda:0")) << map;
  }
  EXPECT_THAT(error("0-19:cuda:2"), HasSubstr("cuda:2 is not among the devices in use"));
  EXPECT_THAT(error("0-9:cuda:0,10-19:cuda:1"), HasSubstr("cuda:1 needs 1050 MiB and has 900 MiB"));
}

TEST(PlanLayers, TheHostHoldsAnything) {
  const std::vector<DeviceMemory> host{{kHost, 0}};
  for (const char* map : {"", "auto", "balanced"})
    EXPECT_THAT(plan_layers(map, kModel, host), ElementsAre(LayerRange{0, 20, kHost})) << map;
}

}  // namespace
}  // namespace tts::model
