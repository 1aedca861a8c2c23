#include "torch/tensor_gpt.h"

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace tts::model {
namespace {

// cos and sin of position * theta^(-2j / dim), rounded where the reference rounds.
at::Tensor make_turns(std::int64_t positions, std::int64_t dim, double theta, c10::Device device) {
  const std::int64_t half = dim / 2;
  std::vector<float> turns(static_cast<std::size_t>(positions * dim));
  for (std::int64_t j = 0; j < half; ++j) {
    const auto frequency = static_cast<float>(1.0 / std::pow(theta, static_cast<double>(2 * j) / static_cast<double>(dim)));
    for (std::int64_t position = 0; position < positions; ++position) {
      const double angle = static_cast<float>(position) * frequency;
      float* const turn = turns.data() + (position * half + j) * 2;
      turn[0] = static_cast<float>(std::cos(angle));
      turn[1] = static_cast<float>(std::sin(angle));
    }
  }
  return at::view_as_complex(to_tensor(turns, {positions, half, 2}, at::kFloat, device));
}

}  // namespace

TensorGpt::TensorGpt(const GptTensors& weights, std::int64_t lanes, std::int64_t positions)
    : weights_(weights), lanes_(lanes), positions_((positions + kPositionUnit - 1) / kPositionUnit * kPositionUnit) {
  for (const LayerRange& range : weights_.placement) {
    Stage stage{.device = to_device(range.device), .first = range.first, .count = range.count, .keys = {}, .values = {}, .turns = {}};
    const at::TensorOptions options = at::TensorOptions().dtype(weights_.formats.kv).device(stage.device);
    stage.keys = at::zeros({std::int64_t{range.count}, lanes_ * (positions_ + 1), weights_.kv_width()}, options);
    stage.values = at::zeros_like(stage.keys);
    stage.turns = make_turns(positions_, weights_.head_dim(), weights_.sizes.rope_theta, stage.device);
    stages_.push_back(std::move(stage));
  }
}

at::Tensor TensorGpt::forward(std::size_t index, const at::Tensor& input, const GptRows& rows) const {
  const Stage& stage = stages_[index];
  const std::int64_t count = input.size(0), hidden = weights_.hidden(), dim = weights_.head_dim(), kv_width = weights_.kv_width(),
                     inner = weights_.sizes.intermediate_size, rotated_heads = (hidden + kv_width) / dim;
  const at::ScalarType kv = weights_.formats.kv;
  const auto norm = [&](const at::Tensor& x, const at::Tensor& weight) {
    return at::rms_norm(x, {hidden}, weight, weights_.sizes.rms_norm_eps);
  };
  const at::Tensor turns = stage.turns.index_select(0, rows.position).unsqueeze(1), bias = attention_bias(rows);

  at::Tensor x = input.clone();
  for (std::size_t i = 0; i < stage.count; ++i) {
    const GptLayerTensors& layer = weights_.layers[stage.first + i];
    const at::Tensor qkv = layer.qkv(norm(x, layer.input_norm));
    const at::Tensor pairs = qkv.narrow(1, 0, hidden + kv_width).to(at::kFloat).view({count, rotated_heads, dim / 2, 2});
    const at::Tensor turned = at::view_as_real(at::view_as_complex(pairs) * turns).to(kv).view({count, hidden + kv_width});
    at::Tensor keys = stage.keys.select(0, static_cast<std::int64_t>(i)), values = stage.values.select(0, static_cast<std::int64_t>(i));
    keys.index_copy_(0, rows.place, turned.narrow(1, hidden, kv_width));
    values.index_copy_(0, rows.place, qkv.narrow(1, hidden + kv_width, kv_width).to(kv));
    x.add_(layer.output(attend(turned.narrow(1, 0, hidden), keys, values, rows, bias)));
    const at::Tensor gate_up = layer.gate_up(norm(x, layer.post_attention_norm));
    x.add_(layer.down(at::silu(gate_up.narrow(1, 0, inner)).mul_(gate_up.narrow(1, inner, inner))));
  }
  return x;
}

// 0 where a row may look, -inf elsewhere: [lanes, 1, group * length, context], where the queries that share a key head follow one
// another, so that the group costs no copies of keys.
at::Tensor TensorGpt::attention_bias(const GptRows& rows) const {
  const std::int64_t group = weights_.sizes.num_attention_heads / weights_.sizes.num_key_value_heads;
  const at::Tensor hidden = at::arange(rows.context, rows.position.options()) > rows.position.unsqueeze(1);
  const at::Tensor bias = at::zeros({hidden.size(0), rows.context}, rows.position.options().dtype(weights_.formats.kv))
                              .masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  return bias.view({rows.lanes, 1, 1, rows.length, rows.context})
      .expand({rows.lanes, 1, group, rows.length, rows.context})
      .reshape({rows.lanes, 1, group * rows.length, rows.context});
}

// [lanes, heads, context, dim]
at::Tensor TensorGpt::cached(const at::Tensor& cache, const GptRows& rows) const {
  const at::Tensor lanes =
      cache.view({lanes_, positions_ + 1, weights_.sizes.num_key_value_heads, weights_.head_dim()}).narrow(1, 0, rows.context);
  return (rows.lane.defined() ? lanes.index_select(0, rows.lane) : lanes.narrow(0, 0, rows.lanes)).transpose(1, 2);
}

at::Tensor TensorGpt::attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values, const GptRows& rows,
                             const at::Tensor& bias) const {
  const std::int64_t heads = weights_.sizes.num_key_value_heads, dim = weights_.head_dim(),
                     group = weights_.sizes.num_attention_heads / heads;
  const at::Tensor q = queries.reshape({rows.lanes, rows.length, heads, group, dim})
                           .permute({0, 2, 3, 1, 4})
                           .reshape({rows.lanes, heads, group * rows.length, dim});
  const at::Tensor attended = at::scaled_dot_product_attention(q, cached(keys, rows), cached(values, rows), bias);
  return attended.view({rows.lanes, heads, group, rows.length, dim})
      .permute({0, 3, 1, 2, 4})
      .reshape({rows.lanes * rows.length, weights_.hidden()});
}

void TensorGpt::move_lane(std::int64_t from, std::int64_t to, std::int64_t count) const {
  for (const Stage& stage : stages_) {
    for (const at::Tensor& cache : {stage.keys, stage.values}) {
      cache.narrow(1, place(to, 0), count).copy_(cache.narrow(1, place(from, 0), count));
    }
  }
}

std::vector<at::Tensor> TensorGpt::save_lane(std::int64_t lane, std::int64_t count) const {
  std::vector<at::Tensor> saved;
  for (const Stage& stage : stages_) {
    for (const at::Tensor& cache : {stage.keys, stage.values}) saved.push_back(copy_to_host(cache.narrow(1, place(lane, 0), count)));
  }
  return saved;
}

void TensorGpt::restore_lane(std::int64_t lane, const std::vector<at::Tensor>& saved) const {
  auto from = saved.begin();
  for (const Stage& stage : stages_) {
    for (const at::Tensor& cache : {stage.keys, stage.values}) {
      cache.narrow(1, place(lane, 0), from->size(1)).copy_(*from);
      ++from;
    }
  }
}

std::size_t TensorGpt::saved_bytes(std::int64_t count) const {
  std::size_t bytes = 0;
  for (const Stage& stage : stages_) {
    bytes += 2 * stage.count * static_cast<std::size_t>(count * weights_.kv_width()) * stage.keys.element_size();
  }
  return bytes;
}

void TensorGpt::clear_lane(std::int64_t lane) const {
  for (const Stage& stage : stages_) {
    for (const at::Tensor& cache : {stage.keys, stage.values}) cache.narrow(1, place(lane, 0), positions_ + 1).zero_();
  }
}

}  // namespace tts::model
