#pragma once
// The recorded reference numbers under tests/golden/data (see the README there).

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "safetensors.h"

namespace tts::model {

inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(TTS_SOURCE_DIR) / "tests/golden/data" / name;
}

inline nlohmann::json golden_json(const std::string& name) {
  std::ifstream file(golden_path(name));
  if (!file) throw std::runtime_error("cannot read " + golden_path(name).string());
  return nlohmann::json::parse(file);
}

class GoldenTensors {
 public:
  explicit GoldenTensors(const std::string& name) : file_(golden_path(name + ".safetensors")) {}

  bool contains(const std::string& name) const { return file_.tensors().contains(name); }
  const Shape& shape(const std::string& name) const { return view(name).shape; }
  std::vector<float> floats(const std::string& name) const { return widen(view(name)); }
  std::vector<std::int32_t> ints(const std::string& name) const {
    const TensorView& tensor = view(name);
    if (tensor.dtype != "I32") throw std::runtime_error(name + " is not I32");
    std::vector<std::int32_t> values(tensor.bytes.size() / sizeof(std::int32_t));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

 private:
  const TensorView& view(const std::string& name) const {
    const auto found = file_.tensors().find(name);
    if (found == file_.tensors().end()) throw std::runtime_error("no tensor " + name + " in " + file_.path().string());
    return found->second;
  }

  SafetensorsFile file_;
};

inline void expect_close(std::span<const float> actual, std::span<const float> expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double worst = 0.0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::abs(double{actual[i]} - expected[i]);
    if (!(difference <= worst)) worst = difference, at = i;
  }
  EXPECT_LE(worst, tolerance) << what << ", element " << at << ": " << actual[at] << " instead of " << expected[at];
}

}  // namespace tts::model
