#include "gpt.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ops/kernels.h"

namespace tts::model {
namespace {

// Row-wise work of this many rows makes one block: less is not worth handing to another worker.
constexpr std::size_t kRowsPerBlock = 4;

}  // namespace

Gpt::Gpt(const GptWeights& weights, ops::ComputePool& pool, const GptLimits& limits)
    : weights_(weights),
      pool_(pool),
      qkv_width_(weights.sizes.hidden_size + 2 * weights.kv_width()),
      code_logits_width_(engine::kCodebooks * std::size_t{weights.sizes.num_audio_tokens}),
      cache_({.slots = limits.slots,
              .layers = weights.sizes.num_hidden_layers,
              .heads = weights.sizes.num_key_value_heads,
              .positions = limits.positions,
              .head_dim = weights.head_dim()}),
      rope_(limits.positions, weights.head_dim(), weights.sizes.rope_theta),
      x_(limits.rows * hidden_size()),
      qkv_(limits.rows * qkv_width_),
      normed_(weights.format(), limits.rows, hidden_size()),
      attended_(weights.format(), limits.rows, hidden_size()),
      inner_(weights.format(), limits.rows, weights.sizes.intermediate_size),
      scores_(pool.workers() * cache_.positions()),
      hidden_(weights.format(), limits.slots, hidden_size()),
      code_logits_(limits.slots * code_logits_width_),
      text_logits_(weights.text_head ? limits.slots * std::size_t{weights.sizes.num_text_tokens} : 0),
      result_index_(limits.rows),
      result_head_(limits.rows) {}

void Gpt::embed_text(std::int32_t token, std::span<float> out) const {
  std::copy_n(weights_.text_embedding.data() + static_cast<std::size_t>(token) * hidden_size(), hidden_size(), out.data());
}

void Gpt::embed_codes(const engine::CodeFrame& codes, std::span<float> out) const {
  const auto row = [&](std::size_t q) { return weights_.code_embedding[q].data() + codes[q] * hidden_size(); };
  std::copy_n(row(0), hidden_size(), out.data());
  for (std::size_t q = 1; q < codes.size(); ++q) ops::axpy(1.0F, row(q), hidden_size(), out.data());
}

template <class Fn>
void Gpt::for_each_row(std::size_t rows, Fn&& fn) {
  pool_.run((rows + kRowsPerBlock - 1) / kRowsPerBlock, [&](std::size_t block, std::uint32_t) {
    const std::size_t end = std::min(rows, (block + 1) * kRowsPerBlock);
    for (std::size_t row = block * kRowsPerBlock; row < end; ++row) fn(row);
  });
}

void Gpt::forward(std::span<const GptRow> rows) {
  assert(!rows.empty() && rows.size() <= result_index_.size());
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    attention(weights_.layers[i], i, rows);
    feed_forward(weights_.layers[i], rows.size());
  }
  heads(rows);
}

void Gpt::attention(const GptLayerWeights& layer, std::size_t index, std::span<const GptRow> rows) {
  const std::size_t hidden = hidden_size(), dim = weights_.head_dim();
  const std::size_t query_heads = weights_.sizes.num_attention_heads, kv_heads = weights_.sizes.num_key_value_heads;
  const std::size_t group = query_heads / kv_heads;
  const auto eps = static_cast<float>(weights_.sizes.rms_norm_eps);
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim));

  for_each_row(rows.size(), [&](std::size_t r) {
    ops::rms_norm(x_.data() + r * hidden, layer.input_norm.data(), eps, hidden, normed_.row(r));
    normed_.commit_row(r);
  });
  layer.qkv->forward(pool_, {normed_, rows.size()}, ops::MutableRows{qkv_.data(), qkv_width_});
  for_each_row(rows.size(), [&](std::size_t r) {
    float* const q = qkv_.data() + r * qkv_width_;
    float* const k = q + hidden;
    const float* const v = k + kv_heads * dim;
    const std::size_t position = rows[r].position;
    for (std::size_t h = 0; h < query_heads; ++h) rope_.rotate(position, q + h * dim);
    for (std::size_t h = 0; h < kv_heads; ++h) {
      rope_.rotate(position, k + h * dim);
      ops::store_key(k + h * dim, dim, position, cache_.keys(rows[r].slot, index, h));
      std::copy_n(v + h * dim, dim, cache_.values(rows[r].slot, index, h) + position * dim);
    }
  });
  pool_.run(rows.size() * kv_heads, [&](std::size_t block, std::uint32_t worker) {
    const std::size_t r = block / kv_heads, kv_head = block % kv_heads;
    const float* const keys = cache_.keys(rows[r].slot, index, kv_head);
    const float* const values = cache_.values(rows[r].slot, index, kv_head);
    for (std::size_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      ops::attend(qkv_.data() + r * qkv_width_ + h * dim, keys, values, std::size_t{rows[r].position} + 1, dim, scale,
                  scores_.data() + worker * cache_.positions(), attended_.row(r) + h * dim);
    }
  });
  attended_.commit(pool_, rows.size());
  layer.output->forward_add(pool_, {attended_, rows.size()}, {x_.data(), hidden});
}

void Gpt::feed_forward(const GptLayerWeights& layer, std::size_t rows) {
  const std::size_t hidden = hidden_size();
  const auto eps = static_cast<float>(weights_.sizes.rms_norm_eps);
  for_each_row(rows, [&](std::size_t r) {
    ops::rms_norm(x_.data() + r * hidden, layer.post_attention_norm.data(), eps, hidden, normed_.row(r));
    normed_.commit_row(r);
  });
  layer.gate_up->forward(pool_, {normed_, rows}, inner_, ops::Activation::kSwiGlu);
  layer.down->forward_add(pool_, {inner_, rows}, {x_.data(), hidden});
}

// Collects the rows that have a head, code rows first, so that each head is one product.
void Gpt::heads(std::span<const GptRow> rows) {
  const std::size_t hidden = hidden_size();
  const auto eps = static_cast<float>(weights_.sizes.rms_norm_eps);
  std::uint32_t next = 0;
  for (const GptHead head : {GptHead::kCode, GptHead::kText}) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].head != head) continue;
      assert(next < hidden_.max_rows() && (head == GptHead::kCode || weights_.text_head));
      result_index_[r] = next;
      result_head_[r] = head;
      ops::rms_norm(x_.data() + r * hidden, weights_.final_norm.data(), eps, hidden, hidden_.row(next));
      hidden_.commit_row(next);
      ++next;
    }
    if (head == GptHead::kCode) code_rows_ = next;
  }
  if (code_rows_ != 0) weights_.code_head->forward(pool_, {hidden_, code_rows_}, ops::MutableRows{code_logits_.data(), code_logits_width_});
  if (const std::size_t text_rows = next - code_rows_; text_rows != 0) {
    weights_.text_head->forward(pool_, {hidden_, text_rows, code_rows_},
                                ops::MutableRows{text_logits_.data(), weights_.sizes.num_text_tokens});
  }
}

std::span<const float> Gpt::hidden(std::size_t row) const noexcept { return {hidden_.row(result_index_[row]), hidden_size()}; }

std::span<const float> Gpt::logits(std::size_t row) const noexcept {
  if (result_head_[row] == GptHead::kCode) return {code_logits_.data() + result_index_[row] * code_logits_width_, code_logits_width_};
  const std::size_t width = weights_.sizes.num_text_tokens;
  return {text_logits_.data() + (result_index_[row] - code_rows_) * width, width};
}

}  // namespace tts::model
