#include "cpu_step_engine.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "utterance_check.h"

namespace tts::model {

// The slot itself, and what lies outside of it by the slot's number.
class CpuStepEngine::Parked final : public engine::ParkedUtterance {
 public:
  Parked(const CpuStepEngine& owner, std::size_t bytes) : owner_(&owner), bytes_(bytes) {}
  std::size_t bytes() const noexcept override { return bytes_; }
  bool belongs_to(const CpuStepEngine& engine) const noexcept { return owner_ == &engine; }

  Slot slot;
  std::unique_ptr<std::byte[]> keys_values;  // of the slot's positions
  std::vector<std::byte> pending;
  StreamDecoder::Saved stream;  // of the code stage

 private:
  const CpuStepEngine* owner_;
  std::size_t bytes_;
};

CpuStepEngine::CpuStepEngine(GptWeights weights, SoundModel sound, const CpuEngineOptions& options)
    : weights_(std::move(weights)),
      sound_(std::move(sound)),
      options_(options),
      pool_(options.compute_threads),
      gpt_(weights_, pool_,
           {.slots = options.max_slots,
            .positions = options.max_context,
            .rows = options.max_slots + options.max_prefill_rows,
            .kv = options.kv}),
      prefixes_(options.prefix_cache_bytes),
      stream_decoder_(sound_, pool_, {.slots = options.max_slots, .max_steps = options.max_decode_steps}),
      info_{.model = options.model,
            .device = "cpu",
            .sample_rate = options.sample_rate,
            .samples_per_step = stream_decoder_.samples_per_step(),
            .max_slots = options.max_slots,
            .max_context = options.max_context,
            .max_rows_per_step = options.max_slots + options.max_prefill_rows,
            .max_pending_steps = options.max_decode_steps,
            .lookahead_steps = stream_decoder_.lookahead_steps(),
            .precision = options.precision},
      slots_(options.max_slots),
      pending_hidden_(std::size_t{options.max_slots} * options.max_decode_steps * weights_.sizes.hidden_size),
      pending_codes_(std::size_t{options.max_slots} * options.max_decode_steps) {
  for (std::uint32_t i = options.max_slots; i > 0; --i) free_slots_.push_back(i - 1);
  for (std::uint32_t i = 0; i < pool_.workers(); ++i)
    samplers_.emplace_back(std::max(weights_.sizes.num_text_tokens, weights_.sizes.num_audio_tokens));
  rows_.reserve(info_.max_rows_per_step);
  draws_.reserve(options.max_slots);
  pushes_.reserve(options.max_slots);
}

const CpuStepEngine::Slot* CpuStepEngine::find(engine::SlotId id) const noexcept {
  if (id.index >= slots_.size()) return nullptr;
  const Slot& slot = slots_[id.index];
  return slot.taken && slot.generation == id.generation ? &slot : nullptr;
}

CpuStepEngine::Slot* CpuStepEngine::find(engine::SlotId id) noexcept { return const_cast<Slot*>(std::as_const(*this).find(id)); }

float* CpuStepEngine::pending_hidden(const Slot& slot, std::size_t step) noexcept {
  return pending_hidden_.data() + (index_of(slot) * info_.max_pending_steps + step) * gpt_.hidden_size();
}

engine::CodeFrame* CpuStepEngine::pending_codes(const Slot& slot, std::size_t step) noexcept {
  return pending_codes_.data() + index_of(slot) * info_.max_pending_steps + step;
}

Result<engine::SlotId> CpuStepEngine::acquire(const engine::UtterancePrompt& prompt, const engine::SamplingParams& sampling) {
  Result<std::vector<float>> speaker = check_utterance({.sizes = weights_.sizes,
                                                        .text_head = weights_.text_head != nullptr,
                                                        .max_context = info_.max_context,
                                                        .speaker_precision = options_.speaker_precision},
                                                       prompt, sampling);
  if (!speaker) return speaker.error();
  if (free_slots_.empty()) return Error{.code = ErrorCode::kQueueFull, .message = "every slot is taken", .param = {}, .retry_after = {}};

  const std::uint32_t index = free_slots_.back();
  if (prompt.stage == engine::Stage::kCode) {
    try {
      stream_decoder_.open(index, prompt.mel_path);
    } catch (const std::runtime_error& error) {
      return Error{.code = ErrorCode::kEngineFailure, .message = error.what(), .param = {}, .retry_after = {}};
    }
  }
  Slot fresh;
  fresh.generation = slots_[index].generation;
  fresh.taken = true;
  fresh.prompt = prompt;
  fresh.sampling = sampling;
  fresh.noise = SeededNoise(sampling.seed);
  fresh.repetition_penalty = RepetitionPenalty(sampling.repetition_penalty);
  fresh.speaker = std::move(speaker).value();
  fresh.prompt_length = static_cast<std::uint32_t>(prompt.tokens.size() + prompt.audio_prompt.size());
  free_slots_.pop_back();
  slots_[index] = std::move(fresh);
  take_prefix(slots_[index]);
  return engine::SlotId{.index = index, .generation = slots_[index].generation};
}

void CpuStepEngine::release(engine::SlotId id) noexcept {
  Slot* const slot = find(id);
  if (slot == nullptr) return;
  slot->taken = false;
  ++slot->generation;
  slot->prompt.speaker.reset();
  slot->prefix_entry.reset();
  free_slots_.push_back(id.index);  // capacity for all slots is there since construction
}

std::size_t CpuStepEngine::pending_bytes(const Slot& slot) const noexcept {
  return slot.pending * (slot.decodes_hidden() ? gpt_.hidden_size() * sizeof(float) : sizeof(engine::CodeFrame));
}

// What the decoder will be given of the pending steps.
std::span<std::byte> CpuStepEngine::pending_of(const Slot& slot) noexcept {
  void* const first = slot.decodes_hidden() ? static_cast<void*>(pending_hidden(slot, 0)) : static_cast<void*>(pending_codes(slot, 0));
  return {static_cast<std::byte*>(first), pending_bytes(slot)};
}

std::size_t CpuStepEngine::parking_bytes(engine::SlotId id) const noexcept {
  const Slot* const slot = find(id);
  if (slot == nullptr) return 0;
  const engine::UtterancePrompt& prompt = slot->prompt;
  return sizeof(Parked) + std::span(prompt.tokens).size_bytes() + std::span(prompt.audio_prompt).size_bytes() +
         std::span(slot->speaker).size_bytes() + gpt_.cache().prefix_bytes(slot->position) + pending_bytes(*slot) +
         (slot->in_code_stage() ? stream_decoder_.saved_bytes(id.index) : 0);
}

Result<std::unique_ptr<engine::ParkedUtterance>> CpuStepEngine::park(engine::SlotId id) {
  Slot* const slot = find(id);
  if (slot == nullptr) return Error{.code = ErrorCode::kNotFound, .message = "the slot is free", .param = {}, .retry_after = {}};
  auto parked = std::make_unique<Parked>(*this, parking_bytes(id));
  const std::size_t kv_bytes = gpt_.cache().prefix_bytes(slot->position);
  parked->keys_values = std::make_unique_for_overwrite<std::byte[]>(kv_bytes);
  gpt_.cache().save_prefix(id.index, slot->position, {parked->keys_values.get(), kv_bytes});
  const std::span<const std::byte> pending = pending_of(*slot);
  parked->pending.assign(pending.begin(), pending.end());
  if (slot->in_code_stage()) parked->stream = stream_decoder_.save(id.index);

  slot->prefix_entry.reset();  // whoever comes meanwhile may fill it
  parked->slot = std::move(*slot);
  release(id);
  return std::unique_ptr<engine::ParkedUtterance>(std::move(parked));
}

Result<engine::SlotId> CpuStepEngine::unpark(std::unique_ptr<engine::ParkedUtterance>& state) {
  auto* const parked = dynamic_cast<Parked*>(state.get());
  if (parked == nullptr || !parked->belongs_to(*this)) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = "parked by another engine", .param = "parked", .retry_after = {}};
  }
  if (free_slots_.empty()) return Error{.code = ErrorCode::kQueueFull, .message = "every slot is taken", .param = {}, .retry_after = {}};

  const std::uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[index];
  parked->slot.generation = slot.generation;
  slot = std::move(parked->slot);
  gpt_.cache().restore_prefix(index, slot.position, {parked->keys_values.get(), gpt_.cache().prefix_bytes(slot.position)});
  std::copy(parked->pending.begin(), parked->pending.end(), pending_of(slot).begin());
  if (slot.in_code_stage()) stream_decoder_.restore(index, parked->stream);
  state.reset();
  return engine::SlotId{.index = index, .generation = slot.generation};
}

// Starts behind the prompt's shared prefix when its keys and values are known, and else asks for them to be kept.
void CpuStepEngine::take_prefix(Slot& slot) {
  const std::size_t positions = slot.prompt.shared_prefix;
  if (positions == 0 || options_.prefix_cache_bytes == 0) return;
  const std::string key = prefix_key(std::span(slot.prompt.tokens).first(positions), slot.prompt.speaker_token, slot.speaker);
  if (const auto entry = prefixes_.find(key)) {
    gpt_.cache().restore_prefix(index_of(slot), positions, entry->bytes);
    slot.position = slot.prompt.shared_prefix;
  } else {
    slot.prefix_entry = prefixes_.reserve(key, gpt_.cache().prefix_bytes(positions));
  }
}

void CpuStepEngine::keep_prefix(Slot& slot) {
  if (slot.prefix_entry == nullptr || slot.position < slot.prompt.shared_prefix) return;
  gpt_.cache().save_prefix(index_of(slot), slot.prompt.shared_prefix, slot.prefix_entry->bytes);
  slot.prefix_entry->filled = true;
  slot.prefix_entry.reset();
}

engine::EngineStats CpuStepEngine::stats() const noexcept {
  return {.prefix_cache_hits = prefixes_.hits(), .prefix_cache_misses = prefixes_.misses(), .prefix_cache_bytes = prefixes_.bytes()};
}

std::uint32_t CpuStepEngine::prefill_left(engine::SlotId id) const noexcept {
  const Slot* const slot = find(id);
  return slot == nullptr || slot->position >= slot->prompt_length ? 0 : slot->prompt_length - slot->position;
}

std::uint32_t CpuStepEngine::pending_steps(engine::SlotId id) const noexcept {
  const Slot* const slot = find(id);
  return slot == nullptr ? 0 : slot->pending;
}

void CpuStepEngine::embed(const Slot& slot, std::uint32_t position, std::span<float> out) const {
  if (position >= slot.prompt_length) {
    if (slot.prompt.stage == engine::Stage::kCode) return gpt_.embed_codes(slot.codes, out);
    return gpt_.embed_text(slot.token, out);
  }
  if (position >= slot.prompt.tokens.size()) return gpt_.embed_codes(slot.prompt.audio_prompt[position - slot.prompt.tokens.size()], out);
  const std::int32_t token = slot.prompt.tokens[position];
  if (!slot.speaker.empty() && token == slot.prompt.speaker_token) {
    std::copy(slot.speaker.begin(), slot.speaker.end(), out.begin());
  } else {
    gpt_.embed_text(token, out);
  }
}

void CpuStepEngine::add_rows(Slot& slot, const engine::StepWork& work, std::size_t work_index) {
  const std::uint32_t left = prefill_left(work.slot);
  assert(left > 0 ? work.prefill_tokens > 0 && work.prefill_tokens <= left : work.prefill_tokens == 0);
  assert(!slot.stopped && slot.pending < info_.max_pending_steps);
  const std::uint32_t count = std::max(work.prefill_tokens, 1U);
  const bool draws = count >= left;
  for (std::uint32_t i = 0; i < count; ++i, ++slot.position) {
    assert(rows_.size() < info_.max_rows_per_step);
    embed(slot, slot.position, gpt_.input(rows_.size()));
    rows_.push_back({.slot = work.slot.index, .position = slot.position, .head = GptHead::kNone});
  }
  if (!draws) return;
  rows_.back().head = slot.prompt.stage == engine::Stage::kCode ? GptHead::kCode : GptHead::kText;
  draws_.push_back({.work = work_index, .row = rows_.size() - 1, .slot = &slot, .tokens = {}});
}

void CpuStepEngine::step(std::span<const engine::StepWork> work, std::span<engine::StepOutcome> outcomes) {
  assert(work.size() == outcomes.size());
  rows_.clear();
  draws_.clear();
  for (std::size_t i = 0; i < work.size(); ++i) {
    Slot* const slot = find(work[i].slot);
    assert(slot != nullptr);
    outcomes[i] = {};
    add_rows(*slot, work[i], i);
  }
  if (rows_.empty()) return;
  gpt_.forward(rows_);
  pool_.run(draws_.size() * engine::kCodebooks, [&](std::size_t block, std::uint32_t worker) {
    draw_token(draws_[block / engine::kCodebooks], static_cast<std::uint32_t>(block % engine::kCodebooks), samplers_[worker]);
  });
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (!gpt_.is_finite(r)) slots_[rows_[r].slot].broken = true;
  }
  for (const Draw& draw : draws_) outcomes[draw.work] = finish_step(draw);
  for (std::size_t i = 0; i < work.size(); ++i) {
    Slot& slot = *find(work[i].slot);
    if (slot.broken) {
      slot.stopped = true;
      outcomes[i] = {.stop = engine::StopReason::kFailed};
    } else {
      keep_prefix(slot);
    }
  }
}

void CpuStepEngine::draw_token(Draw& draw, std::uint32_t codebook, Sampler& sampler) {
  const Slot& slot = *draw.slot;
  const bool code_stage = slot.prompt.stage == engine::Stage::kCode;
  if (!code_stage && codebook != 0) return;
  const std::size_t vocabulary = code_stage ? weights_.sizes.num_audio_tokens : weights_.sizes.num_text_tokens;
  const std::uint32_t end = code_stage ? weights_.sizes.num_audio_tokens - 1 : static_cast<std::uint32_t>(slot.prompt.end_token);
  const SampleRequest request{.logits = gpt_.logits(draw.row).subspan(codebook * vocabulary, vocabulary),
                              .temperature = slot.sampling.temperature[codebook],
                              .repetition_penalty = slot.repetition_penalty,
                              .top_p = slot.sampling.top_p,
                              .top_k = slot.sampling.top_k,
                              .forbidden = slot.steps < slot.sampling.min_steps ? std::optional(end) : std::nullopt,
                              .greedy = slot.sampling.greedy,
                              .step = slot.steps,
                              .codebook = codebook,
                              .recent = slot.recent[codebook].tokens()};
  draw.tokens[codebook] = sampler.sample(request, slot.noise);
}

engine::StepOutcome CpuStepEngine::finish_step(const Draw& draw) {
  Slot& slot = *draw.slot;
  const bool code_stage = slot.prompt.stage == engine::Stage::kCode;
  engine::StepOutcome outcome{.sampled = true};
  bool ended = false;
  for (std::size_t q = 0; q < (code_stage ? engine::kCodebooks : 1); ++q) {
    if (!draw.tokens[q]) {
      slot.broken = true;
      return {};
    }
    const std::uint32_t token = *draw.tokens[q];
    slot.recent[q].push(token);
    if (code_stage) {
      outcome.codes[q] = static_cast<std::uint16_t>(token);
      ended |= token == weights_.sizes.num_audio_tokens - 1;
    } else {
      outcome.token = static_cast<std::int32_t>(token);
      ended = outcome.token == slot.prompt.end_token;
    }
  }
  slot.codes = outcome.codes;
  slot.token = outcome.token;
  if (!ended) {
    if (code_stage) {
      const std::span<const float> hidden = gpt_.hidden(draw.row);
      std::copy(hidden.begin(), hidden.end(), pending_hidden(slot, slot.pending));
      *pending_codes(slot, slot.pending) = outcome.codes;
      ++slot.pending;
    }
    ++slot.steps;
  }
  if (ended) {
    outcome.stop = engine::StopReason::kEndToken;
  } else if (slot.steps == slot.sampling.max_steps) {
    outcome.stop = engine::StopReason::kMaxSteps;
  }
  slot.stopped = outcome.stop != engine::StopReason::kNone;
  return outcome;
}

std::size_t CpuStepEngine::max_decode_samples(std::uint32_t steps, bool /*last*/) const noexcept {
  return stream_decoder_.max_samples(steps);
}

void CpuStepEngine::decode(std::span<engine::DecodeWork> work) {
  pushes_.clear();
  for (const engine::DecodeWork& item : work) {
    Slot* const slot = find(item.slot);
    assert(slot != nullptr && slot->prompt.stage == engine::Stage::kCode && item.steps <= slot->pending);
    const bool hidden = slot->decodes_hidden();
    pushes_.push_back({.slot = item.slot.index,
                       .steps = item.steps,
                       .last = item.last,
                       .lookahead = item.lookahead,
                       .hidden = hidden ? pending_hidden(*slot, 0) : nullptr,
                       .codes = hidden ? nullptr : pending_codes(*slot, 0),
                       .pcm = item.pcm});
  }
  stream_decoder_.push(pushes_);
  for (std::size_t i = 0; i < work.size(); ++i) {
    Slot& slot = *find(work[i].slot);
    work[i].samples = pushes_[i].samples;
    std::copy(pending_hidden(slot, work[i].steps), pending_hidden(slot, slot.pending), pending_hidden(slot, 0));
    std::copy(pending_codes(slot, work[i].steps), pending_codes(slot, slot.pending), pending_codes(slot, 0));
    slot.pending -= work[i].steps;
  }
}

Result<std::vector<engine::CodeFrame>> CpuStepEngine::encode_reference(std::span<const float> pcm) {
  try {
    return sound_.dvae->encoder().encode(pool_, sound_.dvae->quantizer(), pcm);
  } catch (const std::runtime_error& error) {
    return Error{.code = ErrorCode::kEngineFailure, .message = error.what(), .param = {}, .retry_after = {}};
  }
}

}  // namespace tts::model
