#pragma once
// The language model: rows of many utterances through one pass over the weights.
//
// A row is one position of one slot, prompt or generated alike; the rows of a slot lie next to each other. A slot's keys and values are
// written before any of its rows attends, so neighbouring prompt positions may share a pass. A row's bits depend on its slot's
// positions only.
//
// Thread: one, the one that may run the pool. Nothing allocates after construction.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tts/engine/utterance.h"

#include "gpt_weights.h"
#include "kv_cache.h"
#include "ops/aligned_buffer.h"
#include "ops/attention.h"
#include "ops/compute_pool.h"
#include "ops/linear_input.h"
#include "ops/rope.h"

namespace tts::model {

enum class GptHead : std::uint8_t { kNone, kCode, kText };  // kText only when the weights have a text head

struct GptRow {
  std::uint32_t slot = 0;
  std::uint32_t position = 0;
  GptHead head = GptHead::kNone;  // what to compute from the final hidden state
};

struct GptLimits {
  std::uint32_t slots = 1, positions = 1, rows = 1;  // rows of one forward(); at most `slots` of them with a head
  ops::KvFormat kv = ops::KvFormat::kFloat32;
};

class Gpt {
 public:
  // `weights` and `pool` are not owned and must outlive the model.
  Gpt(const GptWeights& weights, ops::ComputePool& pool, const GptLimits& limits);

  std::size_t hidden_size() const noexcept { return weights_.sizes.hidden_size; }

  // Input of row i of the next forward(): to be filled with its embedding.
  std::span<float> input(std::size_t row) noexcept { return {x_.data() + row * hidden_size(), hidden_size()}; }
  void embed_text(std::int32_t token, std::span<float> out) const;
  void embed_codes(const engine::CodeFrame& codes, std::span<float> out) const;

  // Positions of a slot must come in order over calls and within a call, starting at 0 for a new owner, or at the end of a restored prefix.
  void forward(std::span<const GptRow> rows);

  // Results of the last forward() for row i, which had a head. Valid until the next forward().
  std::span<const float> hidden(std::size_t row) const noexcept;  // after the final norm
  std::span<const float> logits(std::size_t row) const noexcept;  // kCode: codebook-major, num_audio_tokens each; kText: num_text_tokens

  // Whether a row of the last pass came through all layers as numbers. Keys and values of one that did not may look as if they were.
  bool is_finite(std::size_t row) const noexcept;

  KvCache& cache() noexcept { return cache_; }
  const KvCache& cache() const noexcept { return cache_; }

 private:
  // The rows of one slot in this pass.
  struct Group {
    std::uint32_t first_row, rows;
  };

  void group_rows(std::span<const GptRow> rows);
  void normalise(std::size_t rows, const std::vector<float>& weight);
  void attention(const GptLayerWeights& layer, std::size_t index, std::span<const GptRow> rows);
  void attend_heads(const Group& group, std::size_t first_head, std::size_t end_head, std::size_t layer, std::span<const GptRow> rows,
                    const std::byte* next);
  void feed_forward(const GptLayerWeights& layer, std::size_t rows);
  void heads(std::span<const GptRow> rows);

  const GptWeights& weights_;
  ops::ComputePool& pool_;
  std::size_t qkv_width_, code_logits_width_;
  KvCache cache_;
  ops::RopeTable rope_;
  ops::AlignedBuffer x_, qkv_;                           // [rows][...]
  ops::LinearInput normed_, attended_, inner_;           // [rows][...]
  ops::LinearInput hidden_;                              // [rows with a head][hidden]
  ops::AlignedBuffer code_logits_, text_logits_;         // [rows with a head][...]
  std::vector<Group> by_work_, groups_;                  // of this pass, the most work first; in the order of attention
  std::vector<std::atomic<std::uint32_t>> blocks_left_;  // [group] blocks of attention to come
  std::vector<std::uint32_t> result_index_;              // row -> its place in hidden_, code rows first
  std::vector<GptHead> result_head_;                     // row -> its head
  std::size_t code_rows_ = 0;
};

}  // namespace tts::model
