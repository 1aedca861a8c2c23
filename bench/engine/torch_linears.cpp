#include "torch_linears.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_weight_int8pack_mm.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/div.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/quantize_per_channel.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

namespace tts::bench {
namespace {

using Product = std::function<at::Tensor(const at::Tensor& x, std::size_t matrix)>;

template <class Fn>
std::vector<at::Tensor> for_each_matrix(const std::vector<Matrix>& matrices, Fn&& fn) {
  std::vector<at::Tensor> result;
  for (const Matrix& m : matrices) result.push_back(fn(static_cast<std::int64_t>(m.outputs), static_cast<std::int64_t>(m.inputs)));
  return result;
}

// Adds one way if it works here at all.
void add(std::vector<TorchLinears>& all, std::string name, const std::vector<at::Tensor>& inputs, const Product& product) {
  try {
    const c10::InferenceMode guard;
    bool equal = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      equal &= at::equal(product(inputs[i], i).narrow(0, 0, 1), product(inputs[i].narrow(0, 0, 1).contiguous(), i));
    }
    all.push_back({.name = std::move(name),
                   .pass =
                       [inputs, product] {
                         const c10::InferenceMode inference;
                         for (std::size_t i = 0; i < inputs.size(); ++i) product(inputs[i], i);
                       },
                   .alone_equals_batch = equal});
  } catch (const std::exception&) {  // not built in, or not on this processor
  }
}

// The operators behind torch.compile's prepacked linear; internal to libtorch, packed for one number of rows.
Product prepacked(const std::vector<Matrix>& matrices, std::size_t rows, at::ScalarType type) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto reorder = dispatcher.findSchemaOrThrow("mkldnn::_reorder_linear_weight", "")
                           .typed<at::Tensor(const at::Tensor&, std::optional<std::int64_t>)>();
  const auto linear = dispatcher.findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, c10::string_view,
                                            c10::List<std::optional<at::Scalar>>, std::optional<c10::string_view>)>();
  const auto weights = for_each_matrix(matrices, [&](std::int64_t outputs, std::int64_t inputs) {
    return reorder.call(at::randn({outputs, inputs}, type), static_cast<std::int64_t>(rows));
  });
  return [linear, weights](const at::Tensor& x, std::size_t i) {
    return linear.call(x, weights[i], {}, "none", c10::List<std::optional<at::Scalar>>(), "");
  };
}

// int8 weights per channel, activations quantised per call (one scale for all rows): torch.ao's dynamic quantisation.
Product dynamic_int8(const std::vector<Matrix>& matrices, at::QEngine engine) {
  at::globalContext().setQEngine(engine);
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto prepack = dispatcher.findSchemaOrThrow("quantized::linear_prepack", "");
  const auto linear = dispatcher.findSchemaOrThrow("quantized::linear_dynamic", "");
  std::vector<c10::IValue> packed;
  for_each_matrix(matrices, [&](std::int64_t outputs, std::int64_t inputs) {
    const at::Tensor weight = at::randn({outputs, inputs});
    std::vector<c10::IValue> stack{
        at::quantize_per_channel(weight, weight.abs().amax({1}).div(127.0), at::zeros({outputs}, at::kLong), 0, at::kQInt8), c10::IValue()};
    prepack.callBoxed(stack);
    packed.push_back(stack.front());
    return weight.narrow(0, 0, 1);
  });
  return [engine, linear, packed](const at::Tensor& x, std::size_t i) {
    if (at::globalContext().qEngine() != engine) at::globalContext().setQEngine(engine);
    std::vector<c10::IValue> stack{x, packed[i], false};
    linear.callBoxed(stack);
    return stack.front().toTensor();
  };
}

template <class Make>
void try_add(std::vector<TorchLinears>& all, const char* name, const std::vector<at::Tensor>& inputs, Make&& make) {
  Product product;
  try {
    const c10::InferenceMode guard;
    product = make();
  } catch (const std::exception&) {
    return;
  }
  add(all, name, inputs, product);
}

}  // namespace

std::vector<TorchLinears> torch_linears(const std::vector<Matrix>& matrices, std::size_t rows, int threads) {
  at::set_num_threads(threads);
  const c10::InferenceMode guard;
  const auto rows_of = [&](at::ScalarType type) {
    return for_each_matrix(matrices, [&](std::int64_t, std::int64_t inputs) {
      return at::randn({static_cast<std::int64_t>(rows), inputs}, type);
    });
  };
  const auto floats = rows_of(at::kFloat), bfloats = rows_of(at::kBFloat16);
  std::vector<TorchLinears> all;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const bool is_float = type == at::kFloat;
    const auto& inputs = is_float ? floats : bfloats;
    try_add(all, is_float ? "torch fp32 linear" : "torch bf16 linear", inputs, [&]() -> Product {
      const auto weights = for_each_matrix(matrices, [&](std::int64_t outputs, std::int64_t width) {
        return at::randn({outputs, width}, type);
      });
      return [weights](const at::Tensor& x, std::size_t i) { return at::linear(x, weights[i]); };
    });
    try_add(all, is_float ? "torch fp32 oneDNN prepacked" : "torch bf16 oneDNN prepacked", inputs,
            [&] { return prepacked(matrices, rows, type); });
  }
  for (const at::QEngine engine : at::globalContext().supportedQEngines()) {
    if (engine == at::kFBGEMM) try_add(all, "torch int8 dynamic (FBGEMM)", floats, [&] { return dynamic_int8(matrices, engine); });
    if (engine == at::kONEDNN) try_add(all, "torch int8 dynamic (oneDNN)", floats, [&] { return dynamic_int8(matrices, engine); });
  }
  try_add(all, "torch int8 weights, bf16 rows", bfloats, [&]() -> Product {
    const auto weights = for_each_matrix(matrices, [&](std::int64_t outputs, std::int64_t width) {
      return at::randint(-127, 128, {outputs, width}, at::kChar);
    });
    const auto scales = for_each_matrix(matrices, [&](std::int64_t outputs, std::int64_t) { return at::randn({outputs}, at::kBFloat16); });
    return [weights, scales](const at::Tensor& x, std::size_t i) { return at::_weight_int8pack_mm(x, weights[i], scales[i]); };
  });
  return all;
}

}  // namespace tts::bench
