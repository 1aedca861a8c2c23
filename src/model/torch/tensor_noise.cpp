#include "torch/tensor_noise.h"

#include <array>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

namespace tts::model {
namespace {

constexpr std::int64_t kLowWord = 0xFFFFFFFF;
constexpr std::int64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

}  // namespace

void write_philox_keys(std::uint64_t seed, std::span<std::int64_t, kPhiloxKeys> out) {
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (std::size_t round = 0; round < kPhiloxRounds; ++round, key0 += kWeyl0, key1 += kWeyl1) {
    out[2 * round] = key0;
    out[2 * round + 1] = key1;
  }
}

// Counter words 0 and 2 travel in one tensor, words 1 and 3 in another, so that each operator serves both. Products wrap at 64 bits;
// only the words that are multiplied next need their upper half cleared.
at::Tensor exponential_noise(const at::Tensor& keys, const at::Tensor& steps, std::int64_t codebooks, std::int64_t vocabulary) {
  const std::int64_t rows = steps.size(0);
  const at::TensorOptions integers = steps.options();
  const std::array shape{rows, codebooks, vocabulary};
  at::Tensor even = at::stack({steps.view({rows, 1, 1}).expand(shape), at::arange(vocabulary, integers).expand(shape)});
  at::Tensor odd =
      at::stack({at::arange(codebooks, integers).view({1, codebooks, 1}).expand(shape), at::zeros({}, integers).expand(shape)});
  const at::Tensor multipliers = at::stack({at::full({}, kMultiplier0, integers), at::full({}, kMultiplier1, integers)}).view({2, 1, 1, 1});
  const at::Tensor round_keys = keys.view({rows, static_cast<std::int64_t>(kPhiloxRounds), 2});
  for (std::size_t round = 0; round < kPhiloxRounds; ++round) {
    const at::Tensor key = round_keys.select(1, static_cast<std::int64_t>(round)).t().view({2, rows, 1, 1});
    const at::Tensor product = (even * multipliers).flip(0);
    even = product.bitwise_right_shift(32).bitwise_xor_(odd).bitwise_xor_(key).bitwise_and_(kLowWord);
    odd = product;
  }
  const at::Tensor wide = even.select(0, 0).bitwise_left_shift(32).bitwise_or_(odd.select(0, 0).bitwise_and(kLowWord));
  const at::Tensor mantissa = wide.bitwise_right_shift_(11).bitwise_and_((std::int64_t{1} << 53) - 1);
  const at::Tensor uniform = mantissa.to(at::kDouble).add_(0.5).mul_(0x1p-53);
  return uniform.log_().neg_().to(at::kFloat).to(at::kDouble);
}

}  // namespace tts::model
