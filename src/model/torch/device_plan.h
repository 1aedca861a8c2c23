#pragma once
// Which part of the model goes where: pure decisions, no libtorch, no device needed.

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tts::model {

struct DeviceName {
  bool gpu = false;
  std::uint32_t index = 0;  // of the GPU
  friend auto operator<=>(const DeviceName&, const DeviceName&) = default;
};

inline constexpr DeviceName kHost{};

std::string to_string(DeviceName device);  // "cpu", "cuda:1"

// What ModelOptions::device comes to on this machine.
struct DeviceChoice {
  bool tensors = false;             // the tensor engine; false = the CPU engine
  std::vector<DeviceName> devices;  // each once, in the order asked for; {kHost} for either engine on the CPU
};

// What there is to choose from.
struct AvailableGpus {
  bool built = false;       // this libtorch has CUDA
  std::uint32_t count = 0;  // GPUs it can use
};

// "auto", "cpu", "cuda" (every GPU), or a list such as "cuda:0,cuda:2"; "cpu-tensors" runs the tensor engine on the CPU, for tests.
// Throws std::runtime_error that says what is wrong and what to do.
DeviceChoice choose_devices(std::string_view text, const AvailableGpus& gpus);

struct DeviceMemory {
  DeviceName device;
  std::uint64_t bytes = 0;  // that may be used; the host is not limited
};

struct ModelBytes {
  std::uint32_t layers = 0;
  std::uint64_t layer = 0;    // one layer: weights, and the keys and values of every slot of every engine
  std::uint64_t common = 0;   // everything else: embeddings, heads, sound networks, scratch; on the first device
  std::uint64_t scratch = 0;  // on every further device that has layers
};

struct LayerRange {
  std::uint32_t first = 0, count = 0;
  DeviceName device;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

// Layers over devices, in ascending order without gaps. `map`:
//  ""          the whole model on devices[0], which must hold it;
//  "auto"      as few devices as it takes, in order; layers that fit nowhere run on the host;
//  "balanced"  in proportion to memory over all devices;
//  "0-9:cuda:0,10-19:cpu"  as written; every layer once; GPUs must be among `devices`.
// Throws std::runtime_error that says what is wrong, with the sizes.
std::vector<LayerRange> plan_layers(std::string_view map, const ModelBytes& model, std::span<const DeviceMemory> devices);

}  // namespace tts::model
