#include "torch/device_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>

namespace tts::model {
namespace {

[[noreturn]] void fail(const std::string& message) { throw std::runtime_error(message); }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<DeviceName> parse_device(std::string_view text) {
  constexpr std::string_view kGpu = "cuda:";
  if (text == "cpu") return kHost;
  if (!text.starts_with(kGpu)) return std::nullopt;
  const auto index = parse_number(text.substr(kGpu.size()));
  if (!index) return std::nullopt;
  return DeviceName{.gpu = true, .index = *index};
}

std::string megabytes(std::uint64_t bytes) { return std::to_string((bytes + (1U << 20) - 1) >> 20) + " MiB"; }

void require_gpus(std::string_view asked, const AvailableGpus& gpus) {
  if (!gpus.built) {
    fail("device " + quoted(asked) +
         ": this build of libtorch has no CUDA; build against a CUDA libtorch (TTS_TORCH_ROOT) with its headers, or set device to cpu");
  }
  if (gpus.count == 0) fail("device " + quoted(asked) + ": no CUDA GPU was found; check the driver (nvidia-smi) and CUDA_VISIBLE_DEVICES");
}

std::vector<DeviceName> every_gpu(const AvailableGpus& gpus) {
  std::vector<DeviceName> devices;
  for (std::uint32_t i = 0; i < gpus.count; ++i) devices.push_back({.gpu = true, .index = i});
  return devices;
}

std::uint64_t usable(const ModelBytes& model, std::span<const DeviceMemory> devices, std::size_t index) {
  const std::uint64_t reserved = index == 0 ? model.common : model.scratch;
  return devices[index].bytes - std::min(devices[index].bytes, reserved);
}

std::uint32_t layers_that_fit(const ModelBytes& model, std::span<const DeviceMemory> devices, std::size_t index) {
  if (!devices[index].device.gpu) return model.layers;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(usable(model, devices, index) / std::max<std::uint64_t>(model.layer, 1), model.layers));
}

std::string sizes_text(const ModelBytes& model, std::span<const DeviceMemory> devices) {
  std::string text =
      std::to_string(model.layers) + " layers of " + megabytes(model.layer) + " and " + megabytes(model.common) + " on the first device";
  if (devices.size() > 1) text += ", " + megabytes(model.scratch) + " on others";
  text += ", against";
  for (const DeviceMemory& device : devices) text += " " + to_string(device.device) + " " + megabytes(device.bytes);
  return text;
}

constexpr const char* kSmaller = "; a lower max_batch, a smaller max_context or int8 weights need less";

void require_common(const ModelBytes& model, std::span<const DeviceMemory> devices) {
  if (devices[0].device.gpu && devices[0].bytes < model.common) {
    fail("the model does not fit: " + sizes_text(model, devices) + kSmaller);
  }
}

std::vector<LayerRange> on_one_device(const ModelBytes& model, std::span<const DeviceMemory> devices) {
  require_common(model, devices);
  if (layers_that_fit(model, devices, 0) < model.layers) {
    fail("the model does not fit: " + sizes_text(model, devices.first(1)) + kSmaller + ", and device_map auto spreads it");
  }
  return {{.first = 0, .count = model.layers, .device = devices[0].device}};
}

std::vector<LayerRange> fill_in_order(const ModelBytes& model, std::span<const DeviceMemory> devices) {
  require_common(model, devices);
  std::vector<LayerRange> ranges;
  std::uint32_t next = 0;
  const auto place = [&](std::uint32_t count, DeviceName device) {
    if (count > 0) ranges.push_back({.first = next, .count = count, .device = device});
    next += count;
  };
  for (std::size_t i = 0; i < devices.size(); ++i) {
    place(std::min(layers_that_fit(model, devices, i), model.layers - next), devices[i].device);
  }
  place(model.layers - next, kHost);
  return ranges;
}

// Ends of the ranges are the shares' running sums, rounded: no device is off by more than one layer, and none takes more than fits.
std::vector<LayerRange> in_proportion(const ModelBytes& model, std::span<const DeviceMemory> devices) {
  require_common(model, devices);
  std::uint64_t room = 0;
  double total = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    room += layers_that_fit(model, devices, i);
    total += static_cast<double>(usable(model, devices, i));
  }
  if (room < model.layers)
    fail("the model does not fit: " + sizes_text(model, devices) + kSmaller + ", and device_map auto uses the CPU too");
  std::vector<LayerRange> ranges;
  std::uint32_t next = 0;
  double share = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    share += total > 0 ? static_cast<double>(usable(model, devices, i)) / total : 1.0 / static_cast<double>(devices.size());
    const bool last = i + 1 == devices.size();
    const auto end = last ? model.layers : static_cast<std::uint32_t>(std::lround(share * model.layers));
    const std::uint32_t count = std::min(std::max(end, next) - next, layers_that_fit(model, devices, i));
    if (count > 0) ranges.push_back({.first = next, .count = count, .device = devices[i].device});
    next += count;
  }
  if (next < model.layers) return fill_in_order(model, devices);  // rounding left some over; in order they fit
  return ranges;
}

LayerRange parse_range(std::string_view part, std::span<const DeviceMemory> devices) {
  const auto colon = part.find(':');
  const std::string_view layers = part.substr(0, colon);
  const auto device = colon == std::string_view::npos ? std::nullopt : parse_device(part.substr(colon + 1));
  const auto dash = layers.find('-');
  const auto first = parse_number(layers.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_number(layers.substr(dash + 1));
  if (!device || !first || !last || *last < *first || *last == ~std::uint32_t{0}) {
    fail("device_map " + quoted(part) + ": write layers and device as in 0-9:cuda:0 or 5:cpu");
  }
  const auto listed = [&](const DeviceMemory& memory) { return memory.device == *device; };
  if (device->gpu && std::none_of(devices.begin(), devices.end(), listed)) {
    fail("device_map " + quoted(part) + ": " + to_string(*device) + " is not among the devices in use; name it in device");
  }
  return {.first = *first, .count = *last - *first + 1, .device = *device};
}

std::vector<LayerRange> as_written(std::string_view map, const ModelBytes& model, std::span<const DeviceMemory> devices) {
  std::vector<LayerRange> ranges;
  for (const std::string_view part : split(map, ',')) ranges.push_back(parse_range(part, devices));
  std::sort(ranges.begin(), ranges.end(), [](const LayerRange& a, const LayerRange& b) { return a.first < b.first; });
  std::uint64_t next = 0;
  bool in_sequence = true;
  for (const LayerRange& range : ranges) {
    in_sequence &= range.first == next;
    next = std::uint64_t{range.first} + range.count;
  }
  if (!in_sequence || next != model.layers) {
    fail("device_map " + quoted(map) + ": must name each of the layers 0-" + std::to_string(model.layers - 1) + " once");
  }
  std::string problems;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].device.gpu) continue;
    std::uint64_t layers = 0;
    for (const LayerRange& range : ranges) layers += range.device == devices[i].device ? range.count : 0;
    const std::uint64_t needed = layers * model.layer + (i == 0 ? model.common : layers > 0 ? model.scratch : 0);
    if (needed > devices[i].bytes) {
      problems += " " + to_string(devices[i].device) + " needs " + megabytes(needed) + " and has " + megabytes(devices[i].bytes);
    }
  }
  if (!problems.empty()) fail("device_map " + quoted(map) + ": the model does not fit:" + problems + kSmaller);
  return ranges;
}

}  // namespace

std::string to_string(DeviceName device) { return device.gpu ? "cuda:" + std::to_string(device.index) : "cpu"; }

DeviceChoice choose_devices(std::string_view text, const AvailableGpus& gpus) {
  if (text == "cpu" || (text == "auto" && (!gpus.built || gpus.count == 0))) return {.tensors = false, .devices = {kHost}};
  if (text == "cpu-tensors") return {.tensors = true, .devices = {kHost}};
  if (text == "auto" || text == "cuda") {
    require_gpus(text, gpus);
    return {.tensors = true, .devices = every_gpu(gpus)};
  }
  DeviceChoice choice{.tensors = true, .devices = {}};
  for (const std::string_view part : split(text, ',')) {
    const auto device = parse_device(part);
    if (!device || !device->gpu) fail("device " + quoted(text) + ": expected auto, cpu, cuda, or a list such as cuda:0,cuda:1");
    if (std::find(choice.devices.begin(), choice.devices.end(), *device) != choice.devices.end()) {
      fail("device " + quoted(text) + ": " + std::string(part) + " is named twice; instances runs several engines on a GPU");
    }
    choice.devices.push_back(*device);
  }
  require_gpus(text, gpus);
  for (const DeviceName& device : choice.devices) {
    if (device.index >= gpus.count) {
      fail("device " + quoted(text) + ": there is no " + to_string(device) + "; this machine has cuda:0" +
           (gpus.count > 1 ? " to cuda:" + std::to_string(gpus.count - 1) : ""));
    }
  }
  return choice;
}

std::vector<LayerRange> plan_layers(std::string_view map, const ModelBytes& model, std::span<const DeviceMemory> devices) {
  if (map.empty()) return on_one_device(model, devices);
  if (map == "auto") return fill_in_order(model, devices);
  if (map == "balanced") return in_proportion(model, devices);
  return as_written(map, model, devices);
}

}  // namespace tts::model
