#pragma once
// libtorch's ways to the same products, to compare with: each holds the weights of a list of matrices as it likes them best.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tts::bench {

struct Matrix {
  std::size_t outputs, inputs;
};

struct TorchLinears {
  std::string name;
  std::function<void()> pass;       // every matrix once
  bool alone_equals_batch = false;  // whether the first row has the same bits alone and among the others, for every matrix
};

// Those that this libtorch and processor have, for `rows` rows of every matrix. Weights are random.
std::vector<TorchLinears> torch_linears(const std::vector<Matrix>& matrices, std::size_t rows, int threads);

}  // namespace tts::bench
