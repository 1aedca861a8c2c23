// Every matrix of one language-model step, once: our packed kernel against libtorch's linear and its prepacked oneDNN form.
// Arguments: rows (batch), threads. Sizes: nano and the official model.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include "best_time.h"
#include "ops/compute_pool.h"
#include "ops/linear.h"
#include "ops/linear_input.h"

namespace {

using namespace tts;
using namespace tts::model;

struct Model {
  std::size_t hidden, inner, layers;
};
constexpr Model kNano{256, 768, 8}, kOfficial{768, 3072, 20};

struct Matrix {
  std::size_t outputs, inputs;
};

std::vector<Matrix> matrices(const Model& model) {
  std::vector<Matrix> result;
  for (std::size_t i = 0; i < model.layers; ++i) {
    result.insert(
        result.end(),
        {{3 * model.hidden, model.hidden}, {model.hidden, model.hidden}, {2 * model.inner, model.hidden}, {model.hidden, model.inner}});
  }
  result.push_back({4 * 626, model.hidden});
  return result;
}

// The fastest pass, and what it means for memory and arithmetic.
void report(benchmark::State& state, const Model& model, const bench::BestTime& best) {
  double weights = 0;
  for (const Matrix& m : matrices(model)) weights += static_cast<double>(m.outputs * m.inputs);
  best.report(state);
  state.counters["GB/s"] = 4e-6 * weights / state.counters["best_ms"];
  state.counters["GFLOP/s"] = 2e-6 * weights * static_cast<double>(state.range(0)) / state.counters["best_ms"];
}

void packed(benchmark::State& state, const Model& model) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  ops::ComputePool pool(static_cast<std::uint32_t>(state.range(1)));
  std::vector<std::unique_ptr<const ops::Linear>> linears;
  std::size_t widest_in = 0, widest_out = 0;
  for (const Matrix& m : matrices(model)) {
    const std::vector<float> weight(m.outputs * m.inputs, 0.01F);
    linears.push_back(ops::make_linear(ops::WeightFormat::kFloat32, weight.data(), m.outputs, m.inputs));
    widest_in = std::max(widest_in, m.inputs);
    widest_out = std::max(widest_out, m.outputs);
  }
  ops::LinearInput x(ops::WeightFormat::kFloat32, rows, widest_in);
  std::fill_n(x.row(0), rows * widest_in, 0.5F);
  std::vector<float> y(rows * widest_out);
  bench::BestTime best;
  for (auto _ : state) {
    best.measure([&] {
      for (const auto& linear : linears) {
        x.set_width(linear->inputs());
        linear->forward(pool, {x, rows}, ops::MutableRows{y.data(), linear->outputs()});
      }
    });
  }
  report(state, model, best);
}

// Whether the first row has the same bits alone and in its batch, for every matrix.
template <class Apply>
void report_invariance(benchmark::State& state, const std::vector<at::Tensor>& inputs, Apply&& apply) {
  bool equal = true;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    equal &= at::equal(apply(i, inputs[i]).narrow(0, 0, 1), apply(i, inputs[i].narrow(0, 0, 1).contiguous()));
  state.counters["alone_equals_batch"] = equal ? 1 : 0;
}

void torch_linear(benchmark::State& state, const Model& model) {
  const c10::InferenceMode guard;
  at::set_num_threads(static_cast<int>(state.range(1)));
  std::vector<at::Tensor> weights, inputs;
  for (const Matrix& m : matrices(model)) {
    weights.push_back(at::randn({static_cast<long>(m.outputs), static_cast<long>(m.inputs)}));
    inputs.push_back(at::randn({state.range(0), static_cast<long>(m.inputs)}));
  }
  bench::BestTime best;
  for (auto _ : state) {
    best.measure([&] {
      for (std::size_t i = 0; i < weights.size(); ++i) benchmark::DoNotOptimize(at::linear(inputs[i], weights[i]));
    });
  }
  report_invariance(state, inputs, [&](std::size_t i, const at::Tensor& x) { return at::linear(x, weights[i]); });
  report(state, model, best);
}

// The operators behind torch.compile's prepacked linear; internal to libtorch.
void torch_prepacked(benchmark::State& state, const Model& model) {
  const c10::InferenceMode guard;
  at::set_num_threads(static_cast<int>(state.range(1)));
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto reorder =
      dispatcher.findSchemaOrThrow("mkldnn::_reorder_linear_weight", "").typed<at::Tensor(const at::Tensor&, c10::optional<int64_t>)>();
  const auto linear = dispatcher.findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const c10::optional<at::Tensor>&, c10::string_view,
                                            c10::List<c10::optional<at::Scalar>>, c10::optional<c10::string_view>)>();
  std::vector<at::Tensor> weights, inputs;
  for (const Matrix& m : matrices(model)) {
    const at::Tensor plain = at::randn({static_cast<long>(m.outputs), static_cast<long>(m.inputs)});
    weights.push_back(reorder.call(plain, state.range(0)));
    inputs.push_back(at::randn({state.range(0), static_cast<long>(m.inputs)}));
  }
  const c10::List<c10::optional<at::Scalar>> none;
  bench::BestTime best;
  for (auto _ : state) {
    best.measure([&] {
      for (std::size_t i = 0; i < weights.size(); ++i) benchmark::DoNotOptimize(linear.call(inputs[i], weights[i], {}, "none", none, ""));
    });
  }
  report_invariance(state, inputs, [&](std::size_t i, const at::Tensor& x) { return linear.call(x, weights[i], {}, "none", none, ""); });
  report(state, model, best);
}

void arguments(benchmark::internal::Benchmark* b) {
  for (const int threads : {1, 2}) {
    for (const int rows : {1, 8, 16, 64}) b->Args({rows, threads});
  }
  b->ArgNames({"rows", "threads"})->Unit(benchmark::kMillisecond)->UseRealTime();
}

BENCHMARK_CAPTURE(packed, nano, kNano)->Apply(arguments);
BENCHMARK_CAPTURE(torch_linear, nano, kNano)->Apply(arguments);
BENCHMARK_CAPTURE(torch_prepacked, nano, kNano)->Apply(arguments);
BENCHMARK_CAPTURE(packed, official, kOfficial)->Apply(arguments);
BENCHMARK_CAPTURE(torch_linear, official, kOfficial)->Apply(arguments);
BENCHMARK_CAPTURE(torch_prepacked, official, kOfficial)->Apply(arguments);

}  // namespace
