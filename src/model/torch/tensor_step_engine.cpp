#include "torch/tensor_step_engine.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <stdexcept>
#include <utility>

#include <spdlog/spdlog.h>

#include <c10/core/InferenceMode.h>

#include "torch/batch_sizes.h"
#include "torch/tensor_sampler.h"
#include "utterance_check.h"

namespace tts::model {
namespace {

// Every device of the model once, the primary first.
std::vector<c10::Device> devices_of(const GptTensors& gpt) {
  std::vector<c10::Device> devices{gpt.primary};
  for (const LayerRange& range : gpt.placement) {
    const c10::Device device = to_device(range.device);
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  }
  return devices;
}

std::string device_text(const GptTensors& gpt) {
  std::string text;
  for (const c10::Device device : devices_of(gpt)) text += (text.empty() ? "" : "+") + device.str();
  return text == "cpu" ? "cpu-tensors" : text;
}

std::string type_text(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16: return "bfloat16";
    case at::kHalf: return "float16";
    default: return "float32";
  }
}

std::string precision_text(const TensorFormats& formats) {
  return (formats.int8_weights ? "int8 weights in " + type_text(formats.compute) : type_text(formats.compute) + " weights") + ", " +
         type_text(formats.kv) + " keys and values, " + type_text(formats.sound) + " sound";
}

}  // namespace

// The slot itself, and what lies outside of it by its number and its lane's.
class TensorStepEngine::Parked final : public engine::ParkedUtterance {
 public:
  Parked(const TensorStepEngine& owner, std::size_t bytes) : owner_(&owner), bytes_(bytes) {}
  std::size_t bytes() const noexcept override { return bytes_; }
  bool belongs_to(const TensorStepEngine& engine) const noexcept { return owner_ == &engine; }

  Slot slot;
  SavedLane lane;
  bool dirty = false;                 // as Lane::dirty
  TensorStreamDecoder::Saved stream;  // of the code stage

 private:
  const TensorStepEngine* owner_;
  std::size_t bytes_;
};

TensorStepEngine::TensorStepEngine(std::shared_ptr<const TensorModel> model, std::unique_ptr<Runtime> runtime,
                                   const TensorEngineOptions& options)
    : model_(std::move(model)),
      options_(options),
      runtime_(std::move(runtime)),
      step_queue_(runtime_->make_queue(devices_of(model_->gpt))),
      sound_queue_(runtime_->make_queue(std::array{model_->gpt.primary})),
      runs_ahead_(options.run_ahead.value_or(runtime_->runs_behind())),
      program_(model_->gpt, *runtime_, *step_queue_,
               {.lanes = options.max_slots,
                .positions = options.max_context,
                .prefill_rows = options.max_slots + options.max_prefill_rows,
                .batch_sizes = make_batch_sizes(options.preferred_batch_sizes, 1, options.max_slots),
                .ring_steps = options.max_decode_steps + 2}),  // the pending ones, and one ahead of them
      decoder_(model_->sound, program_.ring(), model_->gpt.primary, *runtime_, *sound_queue_,
               {.slots = options.max_slots,
                .max_steps = options.max_decode_steps,
                .batch_sizes = make_batch_sizes(options.preferred_batch_sizes, 1, options.max_slots)}),
      pool_(1),
      info_{.model = model_->name,
            .device = device_text(model_->gpt),
            .sample_rate = model_->sample_rate,
            .samples_per_step = decoder_.samples_per_step(),
            .max_slots = options.max_slots,
            .max_context = options.max_context,
            .max_rows_per_step = options.max_slots + options.max_prefill_rows,
            .max_pending_steps = options.max_decode_steps,
            .lookahead_steps = decoder_.lookahead_steps(),
            .precision = precision_text(model_->gpt.formats)},
      slots_(options.max_slots),
      lanes_(options.max_slots),
      prompt_rows_(std::size_t{info_.max_rows_per_step} * model_->gpt.sizes.hidden_size) {
  for (std::uint32_t i = options.max_slots; i > 0; --i) free_slots_.push_back(i - 1);
  in_flight_.reserve(options.max_slots);
  to_queue_.reserve(options.max_slots);
  step_lanes_.reserve(options.max_slots);
  pushes_.reserve(options.max_slots);
  runtime_->settle();  // weights and state are there before any queue uses them
  if (!runtime_->runs_behind()) return;
  program_.prepare();
  decoder_.prepare(engine::MelPath::kHidden);
  runtime_->settle();
}

TensorStepEngine::~TensorStepEngine() { settle(); }

const TensorStepEngine::Slot* TensorStepEngine::find(engine::SlotId id) const noexcept {
  if (id.index >= slots_.size()) return nullptr;
  const Slot& slot = slots_[id.index];
  return slot.taken && slot.generation == id.generation ? &slot : nullptr;
}

TensorStepEngine::Slot* TensorStepEngine::find(engine::SlotId id) noexcept { return const_cast<Slot*>(std::as_const(*this).find(id)); }

std::uint32_t TensorStepEngine::positions_of(const Slot& slot) const noexcept {
  // The last position of the prompt is the input of the first step.
  return slot.consumed < slot.prompt_length ? slot.consumed : slot.prompt_length - 1 + slot.queued;
}

Result<engine::SlotId> TensorStepEngine::acquire(const engine::UtterancePrompt& prompt, const engine::SamplingParams& sampling) {
  Result<std::vector<float>> speaker = check_utterance({.sizes = model_->gpt.sizes,
                                                        .text_head = model_->gpt.has_text_head,
                                                        .max_context = info_.max_context,
                                                        .speaker_precision = model_->speaker_precision},
                                                       prompt, sampling);
  if (!speaker) return speaker.error();
  if (free_slots_.empty()) return Error{.code = ErrorCode::kQueueFull, .message = "every slot is taken", .param = {}, .retry_after = {}};

  const std::uint32_t index = free_slots_.back();
  Slot fresh;
  fresh.generation = slots_[index].generation;
  fresh.taken = true;
  fresh.prompt = prompt;
  fresh.sampling = sampling;
  fresh.speaker = std::move(speaker).value();
  fresh.prompt_length = static_cast<std::uint32_t>(prompt.tokens.size() + prompt.audio_prompt.size());
  free_slots_.pop_back();
  take_free_lane(fresh, index);
  slots_[index] = std::move(fresh);
  if (prompt.stage == engine::Stage::kCode) decoder_.open(index, prompt.mel_path);
  return engine::SlotId{.index = index, .generation = slots_[index].generation};
}

// There is one for each slot.
void TensorStepEngine::take_free_lane(Slot& slot, std::uint32_t index) noexcept {
  const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& l) { return !l.taken; });
  lane->taken = true;
  lane->slot = index;
  slot.lane = static_cast<std::uint32_t>(lane - lanes_.begin());
}

void TensorStepEngine::release(engine::SlotId id) noexcept {
  Slot* const slot = find(id);
  if (slot == nullptr) return;
  lanes_[slot->lane].taken = false;
  slot->taken = false;
  ++slot->generation;
  slot->prompt.speaker.reset();
  free_slots_.push_back(id.index);  // capacity for all slots is there since construction
}

std::size_t TensorStepEngine::parking_bytes(engine::SlotId id) const noexcept {
  const Slot* const slot = find(id);
  if (slot == nullptr) return 0;
  const engine::UtterancePrompt& prompt = slot->prompt;
  return sizeof(Parked) + std::span(prompt.tokens).size_bytes() + std::span(prompt.audio_prompt).size_bytes() +
         std::span(slot->speaker).size_bytes() + program_.saved_bytes(positions_of(*slot), slot->started()) +
         (slot->in_code_stage() ? decoder_.saved_bytes(id.index) : 0);
}

Result<std::unique_ptr<engine::ParkedUtterance>> TensorStepEngine::park(engine::SlotId id) {
  Slot* const slot = find(id);
  if (slot == nullptr) return Error{.code = ErrorCode::kNotFound, .message = "the slot is free", .param = {}, .retry_after = {}};
  const c10::InferenceMode inference;
  auto parked = std::make_unique<Parked>(*this, parking_bytes(id));
  try {
    in_plain_words([&] {
      collect();  // its next step may be on the way
      parked->lane = program_.save_lane(slot->lane, id.index, positions_of(*slot), slot->started());
      if (slot->in_code_stage()) parked->stream = decoder_.save(id.index);
    });
  } catch (...) {
    lose_steps();
    settle();
    throw;
  }
  parked->dirty = lanes_[slot->lane].dirty;
  parked->slot = std::move(*slot);
  release(id);
  return std::unique_ptr<engine::ParkedUtterance>(std::move(parked));
}

Result<engine::SlotId> TensorStepEngine::unpark(std::unique_ptr<engine::ParkedUtterance>& state) {
  auto* const parked = dynamic_cast<Parked*>(state.get());
  if (parked == nullptr || !parked->belongs_to(*this)) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = "parked by another engine", .param = "parked", .retry_after = {}};
  }
  if (free_slots_.empty()) return Error{.code = ErrorCode::kQueueFull, .message = "every slot is taken", .param = {}, .retry_after = {}};

  const c10::InferenceMode inference;
  const std::uint32_t index = free_slots_.back();
  take_free_lane(parked->slot, index);
  Lane& lane = lanes_[parked->slot.lane];
  try {
    in_plain_words([&] {
      if (lane.dirty) program_.clear_lane(parked->slot.lane);
      program_.restore_lane(parked->slot.lane, index, parked->lane);
      if (parked->slot.in_code_stage()) decoder_.restore(index, parked->stream);
    });
  } catch (...) {
    lane = {.taken = false, .dirty = true};
    lose_steps();
    settle();
    throw;
  }
  lane.dirty = parked->dirty;
  free_slots_.pop_back();
  parked->slot.generation = slots_[index].generation;
  slots_[index] = std::move(parked->slot);
  state.reset();
  return engine::SlotId{.index = index, .generation = slots_[index].generation};
}

std::uint32_t TensorStepEngine::prefill_left(engine::SlotId id) const noexcept {
  const Slot* const slot = find(id);
  return slot == nullptr ? 0 : slot->prompt_length - slot->consumed;
}

std::uint32_t TensorStepEngine::pending_steps(engine::SlotId id) const noexcept {
  const Slot* const slot = find(id);
  return slot == nullptr ? 0 : slot->pending;
}

// After a failure: nobody knows what became of the steps on the way.
void TensorStepEngine::lose_steps() noexcept {
  for (const InFlight& step : in_flight_) {
    lanes_[step.lane].dirty = true;
    if (Slot* const slot = find(step.slot)) slot->lost = true;
  }
  in_flight_.clear();
}

void TensorStepEngine::settle() noexcept {
  try {
    runtime_->settle();
  } catch (const std::exception& failure) {
    spdlog::error("{}: the device failed: {}", info_.device, failure.what());
  }
}

void TensorStepEngine::step(std::span<const engine::StepWork> work, std::span<engine::StepOutcome> outcomes) {
  assert(work.size() == outcomes.size());
  const c10::InferenceMode inference;
  try {
    in_plain_words([&] { run_step(work, outcomes); });
  } catch (...) {
    for (const engine::StepWork& item : work) {
      if (const Slot* const slot = find(item.slot)) lanes_[slot->lane].dirty = true;
    }
    lose_steps();
    settle();
    throw;
  }
}

void TensorStepEngine::run_step(std::span<const engine::StepWork> work, std::span<engine::StepOutcome> outcomes) {
  collect();
  settle_lanes();
  to_queue_.clear();
  for (std::size_t i = 0; i < work.size(); ++i) {
    outcomes[i] = {};
    Slot* const slot = find(work[i].slot);
    assert(slot != nullptr && !slot->stopped && slot->pending < info_.max_pending_steps);
    if (slot->lost) throw std::runtime_error("the utterance was lost when the device failed");
    if (work[i].prefill_tokens > 0) take_prompt(*slot, work[i].prefill_tokens);
    assert(work[i].prefill_tokens > 0 || slot->consumed == slot->prompt_length);
    if (slot->consumed == slot->prompt_length && !slot->ready) to_queue_.push_back(slot);
  }
  queue_steps();
  collect();
  for (std::size_t i = 0; i < work.size(); ++i) {
    Slot& slot = *find(work[i].slot);
    if (slot.ready) outcomes[i] = finish_step(slot);
  }
  if (runs_ahead_) run_ahead(work);
}

// Makes lanes fit for use: clears those that a failure left behind, and moves utterances down where that makes steps smaller.
void TensorStepEngine::settle_lanes() {
  std::uint32_t taken = 0;
  for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    taken += lane.taken ? 1 : 0;
    // The next utterance may have the lane already, but has put nothing into it.
    const bool in_use = lane.taken && slots_[lane.slot].consumed > 0;
    if (!lane.dirty || in_use) continue;
    program_.clear_lane(index);
    lane.dirty = false;
  }
  const std::uint32_t size = batch_size_for(program_.batch_sizes(), taken);
  for (std::uint32_t from = size, to = 0; from < lanes_.size(); ++from) {
    if (!lanes_[from].taken) continue;
    while (lanes_[to].taken) ++to;
    Slot& slot = slots_[lanes_[from].slot];
    program_.move_lane(from, to, positions_of(slot));
    std::swap(lanes_[from], lanes_[to]);
    lanes_[from].dirty = lanes_[to].dirty;  // what was copied is still there
    slot.lane = to;
  }
}

// Consumes prompt positions. The last one only becomes the input of the first step.
void TensorStepEngine::take_prompt(Slot& slot, std::uint32_t count) {
  assert(count <= slot.prompt_length - slot.consumed);
  const std::size_t hidden = model_->gpt.sizes.hidden_size;
  const std::uint32_t first = slot.consumed;
  const auto row = [&](std::uint32_t i) { return std::span(prompt_rows_).subspan(i * hidden, hidden); };
  for (std::uint32_t i = 0; i < count; ++i) embed(slot, first + i, row(i));
  slot.consumed += count;
  const bool complete = slot.consumed == slot.prompt_length;
  const std::uint32_t rows = complete ? count - 1 : count;
  if (rows > 0) program_.prefill(slot.lane, first, std::span(prompt_rows_).first(rows * hidden));
  if (!complete) return;
  program_.start(slot.lane,
                 {.slot = index_of(slot),
                  .position = slot.prompt_length - 1,
                  .sampling = slot.sampling,
                  .end_token = slot.prompt.stage == engine::Stage::kCode ? static_cast<std::int32_t>(model_->gpt.sizes.num_audio_tokens - 1)
                                                                         : slot.prompt.end_token},
                 row(rows));
}

void TensorStepEngine::embed(const Slot& slot, std::uint32_t position, std::span<float> out) const {
  const engine::UtterancePrompt& prompt = slot.prompt;
  if (position >= prompt.tokens.size()) {
    const engine::CodeFrame& frame = prompt.audio_prompt[position - prompt.tokens.size()];
    model_->gpt.code_rows[0].copy_row(frame[0], out);
    for (std::size_t q = 1; q < frame.size(); ++q) model_->gpt.code_rows[q].add_row(frame[q], out);
    return;
  }
  const std::int32_t token = prompt.tokens[position];
  if (!slot.speaker.empty() && token == prompt.speaker_token) {
    std::copy(slot.speaker.begin(), slot.speaker.end(), out.begin());
  } else {
    model_->gpt.text_rows.copy_row(static_cast<std::size_t>(token), out);
  }
}

// Gives the device one step of each slot in to_queue_.
void TensorStepEngine::queue_steps() {
  for (const engine::Stage stage : {engine::Stage::kCode, engine::Stage::kText}) {
    step_lanes_.clear();
    std::uint32_t positions = 0;
    for (Slot* const slot : to_queue_) {
      if (slot->prompt.stage != stage) continue;
      ++slot->queued;
      step_lanes_.push_back(slot->lane);
      positions = std::max(positions, positions_of(*slot));
      in_flight_.push_back({.slot = {.index = index_of(*slot), .generation = slot->generation}, .lane = slot->lane});
    }
    if (!step_lanes_.empty()) program_.step(stage, step_lanes_, positions);
  }
  program_.finish();
}

// Waits for what is on the way and puts the tokens where step() finds them.
void TensorStepEngine::collect() {
  program_.wait();
  for (const InFlight& step : in_flight_) {
    Slot* const slot = find(step.slot);
    if (slot == nullptr) continue;  // released meanwhile
    slot->ready = program_.tokens(step.lane);
  }
  in_flight_.clear();
}

engine::StepOutcome TensorStepEngine::finish_step(Slot& slot) {
  const StepTokens tokens = *std::exchange(slot.ready, std::nullopt);
  const bool codes = slot.prompt.stage == engine::Stage::kCode;
  engine::StepOutcome outcome{.sampled = true};
  bool ended = false;
  for (std::size_t q = 0; q < (codes ? engine::kCodebooks : 1); ++q) {
    if (tokens[q] == kBrokenToken) {
      slot.stopped = lanes_[slot.lane].dirty = true;
      return {.stop = engine::StopReason::kFailed};
    }
    if (codes) {
      outcome.codes[q] = static_cast<std::uint16_t>(tokens[q]);
      ended |= outcome.codes[q] == model_->gpt.sizes.num_audio_tokens - 1;
    } else {
      outcome.token = static_cast<std::int32_t>(tokens[q]);
      ended = outcome.token == slot.prompt.end_token;
    }
  }
  if (ended) {
    outcome.stop = engine::StopReason::kEndToken;
  } else {
    slot.pending += codes ? 1 : 0;
    if (++slot.steps == slot.sampling.max_steps) outcome.stop = engine::StopReason::kMaxSteps;
  }
  slot.stopped = outcome.stop != engine::StopReason::kNone;
  return outcome;
}

void TensorStepEngine::run_ahead(std::span<const engine::StepWork> work) {
  to_queue_.clear();
  for (const engine::StepWork& item : work) {
    Slot& slot = *find(item.slot);
    if (slot.consumed == slot.prompt_length && !slot.stopped) to_queue_.push_back(&slot);
  }
  if (!to_queue_.empty()) queue_steps();
}

std::size_t TensorStepEngine::max_decode_samples(std::uint32_t steps, bool) const noexcept { return decoder_.max_samples(steps); }

void TensorStepEngine::decode(std::span<engine::DecodeWork> work) {
  pushes_.clear();
  for (const engine::DecodeWork& item : work) {
    const Slot* const slot = find(item.slot);
    assert(slot != nullptr && slot->prompt.stage == engine::Stage::kCode && item.steps <= slot->pending);
    pushes_.push_back({.slot = index_of(*slot), .steps = item.steps, .last = item.last, .lookahead = item.lookahead, .pcm = item.pcm});
  }
  try {
    in_plain_words([&] { decoder_.push(pushes_); });
  } catch (...) {
    settle();
    throw;
  }
  for (std::size_t i = 0; i < work.size(); ++i) {
    work[i].samples = pushes_[i].samples;
    find(work[i].slot)->pending -= work[i].steps;
  }
}

Result<std::vector<engine::CodeFrame>> TensorStepEngine::encode_reference(std::span<const float> pcm) {
  return model_->sound.encoder.encode(pool_, model_->sound.quantizer, pcm);
}

}  // namespace tts::model
