#pragma once
// Rows of a lookup table: float32 as stored, or bfloat16 where the model is held in a smaller format.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/weight_format.h"

namespace tts::model {

// Immutable.
class EmbeddingTable {
 public:
  EmbeddingTable() = default;
  // `values` is [rows, width]. Formats below float32 keep bfloat16: a table is read by the row, so that fewer bytes save memory, not time.
  EmbeddingTable(std::vector<float> values, std::size_t width, ops::WeightFormat format);

  void copy_row(std::size_t row, std::span<float> out) const;
  void add_row(std::size_t row, std::span<float> out) const;  // out += row

 private:
  std::size_t width_ = 0;
  std::vector<float> wide_;
  std::vector<std::uint16_t> narrow_;  // bfloat16; one of the two is empty
};

}  // namespace tts::model
