#include "gpt.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ops/kernels.h"
#include "ops/quantize.h"

namespace tts::model {
namespace {

// Work on so few rows is done sooner than handed out.
constexpr std::size_t kRowsAlone = 12;
constexpr std::size_t kRowsPerBlock = 8;
// Attention is cut finer than there are workers, so that they end together.
constexpr std::size_t kBlocksPerWorker = 24;

std::size_t div_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

}  // namespace

Gpt::Gpt(const GptWeights& weights, ops::ComputePool& pool, const GptLimits& limits)
    : weights_(weights),
      pool_(pool),
      qkv_width_(weights.sizes.hidden_size + 2 * weights.kv_width()),
      code_logits_width_(engine::kCodebooks * std::size_t{weights.sizes.num_audio_tokens}),
      cache_({.format = limits.kv,
              .slots = limits.slots,
              .layers = weights.sizes.num_hidden_layers,
              .heads = weights.sizes.num_key_value_heads,
              .positions = limits.positions,
              .head_dim = weights.head_dim()}),
      rope_(limits.positions, weights.head_dim(), weights.sizes.rope_theta),
      x_(limits.rows * hidden_size()),
      qkv_(limits.rows * qkv_width_),
      normed_(weights.format(), limits.rows, hidden_size(), true),
      attended_(weights.format(), limits.rows, hidden_size(), true),
      inner_(weights.format(), limits.rows, weights.sizes.intermediate_size, true),
      hidden_(weights.head_format(), limits.slots, hidden_size()),
      code_logits_(limits.slots * code_logits_width_),
      text_logits_(weights.text_head ? limits.slots * std::size_t{weights.sizes.num_text_tokens} : 0),
      blocks_left_(limits.rows),
      result_index_(limits.rows),
      result_head_(limits.rows) {
  by_work_.reserve(limits.rows);
  groups_.reserve(limits.rows);
}

void Gpt::embed_text(std::int32_t token, std::span<float> out) const {
  weights_.text_embedding.copy_row(static_cast<std::size_t>(token), out);
}

void Gpt::embed_codes(const engine::CodeFrame& codes, std::span<float> out) const {
  weights_.code_embedding[0].copy_row(codes[0], out);
  for (std::size_t q = 1; q < codes.size(); ++q) weights_.code_embedding[q].add_row(codes[q], out);
}

void Gpt::forward(std::span<const GptRow> rows) {
  assert(!rows.empty() && rows.size() <= result_index_.size());
  group_rows(rows);
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    attention(weights_.layers[i], i, rows);
    feed_forward(weights_.layers[i], rows.size());
  }
  heads(rows);
}

void Gpt::group_rows(std::span<const GptRow> rows) {
  by_work_.clear();
  for (std::uint32_t r = 0; r < rows.size(); ++r) {
    if (r == 0 || rows[r].slot != rows[r - 1].slot) by_work_.push_back({.first_row = r, .rows = 0});
    ++by_work_.back().rows;
  }
  const auto work = [&](const Group& group) {
    return std::uint64_t{group.rows} * (std::uint64_t{rows[group.first_row].position} + group.rows);
  };
  std::sort(by_work_.begin(), by_work_.end(), [&](const Group& a, const Group& b) { return work(a) > work(b); });
  // Each worker begins with a run of neighbouring blocks.
  groups_.clear();
  for (std::size_t worker = 0; worker < pool_.workers(); ++worker) {
    for (std::size_t g = worker; g < by_work_.size(); g += pool_.workers()) groups_.push_back(by_work_[g]);
  }
}

// normed_ = RMSNorm of x_, ready for the next product.
void Gpt::normalise(std::size_t rows, const std::vector<float>& weight) {
  const auto eps = static_cast<float>(weights_.sizes.rms_norm_eps);
  const auto part = [&](std::size_t first, std::size_t end) {
    for (std::size_t r = first; r < end; ++r) {
      ops::rms_norm(x_.data() + r * hidden_size(), weight.data(), eps, hidden_size(), normed_.row(r));
      normed_.commit_row(r);
    }
  };
  if (rows <= kRowsAlone) return part(0, rows);
  pool_.run(div_up(rows, kRowsPerBlock),
            [&](std::size_t block, std::uint32_t) { part(block * kRowsPerBlock, std::min(rows, (block + 1) * kRowsPerBlock)); });
}

void Gpt::attention(const GptLayerWeights& layer, std::size_t index, std::span<const GptRow> rows) {
  normalise(rows.size(), layer.input_norm);
  layer.qkv->forward(pool_, {normed_, rows.size()}, ops::MutableRows{qkv_.data(), qkv_width_});

  const std::size_t kv_heads = weights_.sizes.num_key_value_heads;
  const std::size_t heads_per_block =
      std::clamp<std::size_t>(groups_.size() * kv_heads / (kBlocksPerWorker * pool_.workers()), 1, kv_heads);
  const std::size_t blocks_per_group = div_up(kv_heads, heads_per_block);
  for (std::size_t g = 0; g < groups_.size(); ++g)
    blocks_left_[g].store(static_cast<std::uint32_t>(blocks_per_group), std::memory_order_relaxed);
  const std::size_t blocks = groups_.size() * blocks_per_group;
  pool_.run(blocks, [&](std::size_t block, std::uint32_t) {
    const std::size_t g = block / blocks_per_group, first = block % blocks_per_group * heads_per_block;
    const Group& group = groups_[g];
    const std::byte* next = nullptr;  // a worker takes blocks in order, mostly
    if (block + 1 < blocks) {
      const Group& following = groups_[(block + 1) / blocks_per_group];
      const GptRow& row = rows[following.first_row];
      const std::size_t head = (block + 1) % blocks_per_group * heads_per_block;
      next = cache_.head(row.slot, index, head).records;
      cache_.prefetch_store(row.slot, index, head, row.position);
    }
    attend_heads(group, first, std::min(kv_heads, first + heads_per_block), index, rows, next);
    if (blocks_left_[g].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    for (std::size_t r = group.first_row; r < group.first_row + group.rows; ++r) attended_.commit_row(r);
  });
  layer.output->forward_add(pool_, {attended_, rows.size()}, {x_.data(), hidden_size()});
}

// Some key/value heads of one slot: positions into queries and keys, keys and values into the cache, then attention. `next`: what this
// worker will probably read afterwards.
void Gpt::attend_heads(const Group& group, std::size_t first_head, std::size_t end_head, std::size_t layer, std::span<const GptRow> rows,
                       const std::byte* next) {
  const std::size_t dim = weights_.head_dim(), query_heads = weights_.sizes.num_attention_heads;
  const std::size_t kv_heads = weights_.sizes.num_key_value_heads, queries = query_heads / kv_heads;
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
  const std::size_t slot = rows[group.first_row].slot, end_row = group.first_row + group.rows;
  for (std::size_t h = first_head; h < end_head; ++h) {
    for (std::size_t r = group.first_row; r < end_row; ++r) {
      assert(rows[r].slot == slot && rows[r].position == rows[group.first_row].position + (r - group.first_row));
      float* const q = qkv_.data() + r * qkv_width_;
      float* const key = q + (query_heads + h) * dim;
      for (std::size_t i = h * queries; i < (h + 1) * queries; ++i) rope_.rotate(rows[r].position, q + i * dim);
      rope_.rotate(rows[r].position, key);
      cache_.store(slot, layer, h, rows[r].position, key, key + kv_heads * dim);
    }
    if (h + 1 < end_head) cache_.prefetch_store(slot, layer, h + 1, rows[group.first_row].position);
    ops::KvHead history = cache_.head(slot, layer, h);
    for (std::size_t r = group.first_row; r < end_row; ++r) {
      for (std::size_t i = h * queries; i < (h + 1) * queries; ++i) {
        if (r + 1 == end_row && i + 1 == (h + 1) * queries)
          history.next = h + 1 < end_head ? cache_.head(slot, layer, h + 1).records : next;
        ops::attend(cache_.format(), qkv_.data() + r * qkv_width_ + i * dim, history, std::size_t{rows[r].position} + 1, dim, scale,
                    attended_.row(r) + i * dim);
      }
    }
  }
}

void Gpt::feed_forward(const GptLayerWeights& layer, std::size_t rows) {
  normalise(rows, layer.post_attention_norm);
  layer.gate_up->forward(pool_, {normed_, rows}, inner_, ops::Activation::kSwiGlu);
  layer.down->forward_add(pool_, {inner_, rows}, {x_.data(), hidden_size()});
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

bool Gpt::is_finite(std::size_t row) const noexcept { return ops::all_finite(x_.data() + row * hidden_size(), hidden_size()); }

std::span<const float> Gpt::hidden(std::size_t row) const noexcept { return {hidden_.row(result_index_[row]), hidden_size()}; }

std::span<const float> Gpt::logits(std::size_t row) const noexcept {
  if (result_head_[row] == GptHead::kCode) return {code_logits_.data() + result_index_[row] * code_logits_width_, code_logits_width_};
  const std::size_t width = weights_.sizes.num_text_tokens;
  return {text_logits_.data() + (result_index_[row] - code_rows_) * width, width};
}

}  // namespace tts::model
