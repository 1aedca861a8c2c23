#include "torch/step_program.h"

#include <algorithm>
#include <cassert>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "sampler.h"
#include "torch/batch_sizes.h"
#include "torch/tensor_load.h"
#include "torch/tensor_noise.h"
#include "torch/tensor_sampler.h"

namespace tts::model {
namespace {

constexpr std::int64_t kCodebooks = engine::kCodebooks, kWindow = TokenWindow::kCapacity;
constexpr std::uint32_t kSmallestPrefill = 16, kSmallestContext = 256;

// Columns of the lanes' state.
enum Integer : std::int64_t { kPosition, kStep, kSlot, kMinSteps, kEndToken, kTopK, kGreedy, kKeys, kIntegers = kKeys + kPhiloxKeys };
enum Float : std::int64_t { kTemperature, kPenalty = kTemperature + kCodebooks, kTopP, kFloats };
enum PromptPiece : std::int64_t { kLane, kFirst, kCount, kPromptPiece };

std::int64_t as_int(std::uint32_t value) { return value; }

// [rows * width] values of a host tensor from row `row` on.
template <class T>
T* host_row(const at::Tensor& tensor, std::int64_t row) {
  return tensor.mutable_data_ptr<T>() + row * tensor.stride(0);
}

}  // namespace

StepProgram::StepProgram(const GptTensors& weights, Runtime& runtime, Queue& queue, StepProgramOptions options)
    : weights_(weights),
      runtime_(runtime),
      queue_(queue),
      options_(std::move(options)),
      gpt_(weights, options_.lanes, options_.positions),
      prefill_sizes_(make_batch_sizes({}, kSmallestPrefill, options_.prefill_rows)),
      context_sizes_(make_batch_sizes({}, kSmallestContext, static_cast<std::uint32_t>(gpt_.positions()))) {
  const std::int64_t lanes = options_.lanes, hidden = weights_.hidden(), ring_rows = (lanes + 1) * as_int(options_.ring_steps);
  const at::TensorOptions floats = at::TensorOptions().dtype(at::kFloat).device(weights_.primary), integers = floats.dtype(at::kLong);
  ring_ = {.hidden = at::zeros({ring_rows, hidden}, floats),
           .codes = at::zeros({ring_rows, kCodebooks}, integers),
           .capacity = options_.ring_steps};

  integers_ = at::zeros({lanes, kIntegers}, integers);
  floats_ = at::zeros({lanes, kFloats}, floats);
  recent_ = at::zeros({lanes, kCodebooks, kWindow + 1}, integers);
  input_ = at::zeros({lanes, hidden}, floats);
  live_ = at::zeros({lanes}, floats.dtype(at::kBool));
  tokens_ = at::zeros({lanes, kCodebooks}, integers);
  host_integers_ = runtime_.host_buffer({lanes, kIntegers}, at::kLong);
  host_floats_ = runtime_.host_buffer({lanes, kFloats}, at::kFloat);
  host_input_ = runtime_.host_buffer({lanes, hidden}, at::kFloat);
  host_live_ = runtime_.host_buffer({2, lanes}, at::kBool);  // code steps, text steps
  host_tokens_ = runtime_.host_buffer({lanes, kCodebooks}, at::kLong);
  floats_.fill_(1);  // what a lane that never started computes is finite, though nobody looks

  prompt_ = at::zeros({as_int(options_.prefill_rows), hidden}, floats);
  prompt_piece_ = at::zeros({kPromptPiece}, integers);
  host_prompt_ = runtime_.host_buffer({as_int(options_.prefill_rows), hidden}, at::kFloat);
  host_prompt_piece_ = runtime_.host_buffer({lanes, kPromptPiece}, at::kLong);
  make_pieces();
}

void StepProgram::make_pieces() {
  pieces_.push_back({.device = weights_.primary, .begins = true});
  for (std::size_t stage = 0; stage < gpt_.stages(); ++stage) {
    if (stage > 0 || gpt_.device(stage) != weights_.primary) pieces_.push_back({.device = gpt_.device(stage)});
    pieces_.back().stages.push_back(stage);
  }
  if (pieces_.back().device != weights_.primary) pieces_.push_back({.device = weights_.primary});
  pieces_.back().ends = true;

  const std::int64_t rows = std::max(options_.lanes, options_.prefill_rows);
  for (Piece& piece : pieces_) {
    const at::TensorOptions floats = at::TensorOptions().dtype(at::kFloat).device(piece.device);
    const auto states = [&] { return at::zeros({rows, weights_.hidden()}, floats); };
    const auto row_numbers = [&] { return at::zeros({2, rows}, floats.dtype(at::kLong)); };
    piece.lane = piece.begins ? prompt_piece_.narrow(0, kLane, 1) : at::zeros({1}, floats.dtype(at::kLong));
    if (!piece.begins) piece.in = states(), piece.in_rows = row_numbers();
    if (!piece.ends) piece.out = states(), piece.out_rows = row_numbers();
  }
}

std::int64_t StepProgram::codebooks(Kind kind) const { return kind == Kind::kCodeStep ? kCodebooks : 1; }

std::int64_t StepProgram::vocabulary(Kind kind) const {
  return kind == Kind::kCodeStep ? weights_.sizes.num_audio_tokens : weights_.sizes.num_text_tokens;
}

std::uint32_t StepProgram::context_for(std::uint32_t positions) const { return batch_size_for(context_sizes_, positions); }

void StepProgram::prepare() {
  // Largest first: what the smaller ones need is then there already.
  for (auto context = context_sizes_.rbegin(); context != context_sizes_.rend(); ++context) {
    for (auto rows = prefill_sizes_.rbegin(); rows != prefill_sizes_.rend(); ++rows) {
      queue_.run([&] { recording({Kind::kPrefill, *rows, *context}); });
    }
    for (auto lanes = options_.batch_sizes.rbegin(); lanes != options_.batch_sizes.rend(); ++lanes) {
      queue_.run([&] { recording({Kind::kCodeStep, *lanes, *context}); });
    }
  }
}

const StepProgram::Recording& StepProgram::recording(const Shape& shape) {
  if (const auto known = recordings_.find(shape); known != recordings_.end()) return known->second;
  // While it records, nobody takes part: rows go nowhere.
  live_.zero_();
  prompt_piece_.zero_();
  Recording recording;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!pieces_[i].begins) pieces_[i].in_rows.fill_(0).select(0, 0).fill_(gpt_.no_place(0));
    recording.push_back(queue_.record(pieces_[i].device, [this, i, shape] { compute(i, shape); }));
  }
  return recordings_.emplace(shape, std::move(recording)).first->second;
}

void StepProgram::run(const Shape& shape) {
  unfinished_ = true;
  const Recording& work = recording(shape);
  const std::int64_t rows = shape.rows;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (i > 0) {
      const Piece& from = pieces_[i - 1];
      pieces_[i].in.narrow(0, 0, rows).copy_(from.out.narrow(0, 0, rows));
      pieces_[i].in_rows.narrow(1, 0, rows).copy_(from.out_rows.narrow(1, 0, rows));
      if (shape.kind == Kind::kPrefill) pieces_[i].lane.copy_(from.lane);
    }
    work[i]->replay();
  }
}

void StepProgram::compute(std::size_t index, const Shape& shape) {
  const Piece& piece = pieces_[index];
  const std::int64_t count = shape.rows;
  const bool draws = shape.kind != Kind::kPrefill;
  at::Tensor x;
  GptRows rows;
  if (piece.begins) {
    std::tie(x, rows) = draws ? begin_step(shape) : begin_prefill(shape);
  } else {
    x = piece.in.narrow(0, 0, count);
    rows = {.place = piece.in_rows.select(0, 0).narrow(0, 0, count), .position = piece.in_rows.select(0, 1).narrow(0, 0, count)};
  }
  rows.lane = draws ? at::Tensor() : piece.lane;
  rows.lanes = draws ? count : 1;
  rows.length = draws ? 1 : count;
  rows.context = shape.context;

  for (const std::size_t stage : piece.stages) x = gpt_.forward(stage, x, rows);
  if (!piece.ends) {
    piece.out.narrow(0, 0, count).copy_(x);
    piece.out_rows.narrow(1, 0, count).copy_(at::stack({rows.place, rows.position}));
  } else if (draws) {
    end_step(shape, x);
  }
}

std::pair<at::Tensor, GptRows> StepProgram::begin_step(const Shape& shape) {
  const std::int64_t lanes = shape.rows;
  if (pieces_.size() == 1) queue_.beside([&] { noise_ = make_noise(shape); });
  const at::Tensor position = integers_.select(1, kPosition).narrow(0, 0, lanes);
  const at::Tensor lane = at::arange(lanes, position.options()) * gpt_.place(1, 0);
  const at::Tensor place = lane + at::where(live_.narrow(0, 0, lanes), position, gpt_.no_place(0));
  return {input_.narrow(0, 0, lanes), {.place = place, .position = position}};
}

std::pair<at::Tensor, GptRows> StepProgram::begin_prefill(const Shape& shape) const {
  const at::Tensor lane = prompt_piece_.narrow(0, kLane, 1), first = prompt_piece_.narrow(0, kFirst, 1),
                   count = prompt_piece_.narrow(0, kCount, 1);
  const at::Tensor row = at::arange(as_int(shape.rows), first.options()), real = row < count;
  const at::Tensor position = at::where(real, first + row, 0);
  const at::Tensor place = lane * gpt_.place(1, 0) + at::where(real, position, gpt_.no_place(0));
  return {prompt_.narrow(0, 0, shape.rows), {.place = place, .position = position}};
}

at::Tensor StepProgram::make_noise(const Shape& shape) const {
  const at::Tensor state = integers_.narrow(0, 0, shape.rows);
  return exponential_noise(state.narrow(1, kKeys, kPhiloxKeys), state.select(1, kStep), codebooks(shape.kind), vocabulary(shape.kind));
}

void StepProgram::end_step(const Shape& shape, const at::Tensor& x) {
  const std::int64_t lanes = shape.rows, books = codebooks(shape.kind), words = vocabulary(shape.kind), hidden_size = weights_.hidden();
  const bool codes = shape.kind == Kind::kCodeStep;
  const at::Tensor state = integers_.narrow(0, 0, lanes), settings = floats_.narrow(0, 0, lanes), live = live_.narrow(0, 0, lanes),
                   step = state.select(1, kStep), recent = recent_.narrow(0, 0, lanes).narrow(1, 0, books);
  const at::Tensor hidden = at::rms_norm(x, {hidden_size}, weights_.final_norm, weights_.sizes.rms_norm_eps);
  const at::Tensor logits = (codes ? weights_.code_head : weights_.text_head)(hidden).view({lanes, books, words});
  if (pieces_.size() == 1) {
    queue_.rejoin();
  } else {
    noise_ = make_noise(shape);
  }
  const at::Tensor drawn = sample({.logits = logits,
                                   .noise = noise_,
                                   .temperature = settings.narrow(1, kTemperature, books),
                                   .repetition_penalty = settings.select(1, kPenalty),
                                   .top_p = settings.select(1, kTopP),
                                   .top_k = state.select(1, kTopK),
                                   .forbidden = at::where(step < state.select(1, kMinSteps), state.select(1, kEndToken), -1),
                                   .greedy = state.select(1, kGreedy) != 0,
                                   .recent = recent.narrow(2, 0, kWindow),
                                   .recent_count = at::where(live, step.clamp_max(kWindow), 0)});
  noise_.reset();
  const at::Tensor is_live = live.unsqueeze(1), token = drawn.clamp_min(0);

  // From here on the lanes that take part move on; the others stay as they are.
  at::Tensor tokens = tokens_.narrow(0, 0, lanes).narrow(1, 0, books), input = input_.narrow(0, 0, lanes);
  tokens.copy_(at::where(is_live, drawn, tokens));
  recent.scatter_(2, at::where(live, step.remainder(kWindow), kWindow).view({lanes, 1, 1}).expand({lanes, books, 1}), token.unsqueeze(2));
  at::Tensor next;
  if (codes) {
    const at::Tensor row =
        at::where(live, state.select(1, kSlot) * ring_.capacity + step.remainder(ring_.capacity), ring_.row(options_.lanes, 0));
    ring_.hidden.index_copy_(0, row, hidden);
    ring_.codes.index_copy_(0, row, token);
    const at::Tensor entry = (token + at::arange(books, token.options()) * words).flatten();
    next = weights_.code_embedding.index_select(0, entry).view({lanes, books, hidden_size}).sum(1);
  } else {
    next = weights_.text_embedding.index_select(0, token.flatten());
  }
  input.copy_(at::where(is_live, next, input));
  state.narrow(1, kPosition, 2).add_(is_live);
  static_assert(kStep == kPosition + 1);
}

void StepProgram::prefill(std::uint32_t lane, std::uint32_t first, std::span<const float> rows) {
  const auto count = static_cast<std::int64_t>(rows.size()) / weights_.hidden();
  assert(count > 0 && staged_rows_ + count <= host_prompt_.size(0) && staged_pieces_ < host_prompt_piece_.size(0));
  std::copy(rows.begin(), rows.end(), host_row<float>(host_prompt_, staged_rows_));
  std::int64_t* const piece = host_row<std::int64_t>(host_prompt_piece_, staged_pieces_);
  piece[kLane] = lane;
  piece[kFirst] = first;
  piece[kCount] = count;
  const Shape shape{Kind::kPrefill, batch_size_for(prefill_sizes_, static_cast<std::uint32_t>(count)),
                    context_for(first + static_cast<std::uint32_t>(count))};
  queue_.run([&] {
    recording(shape);
    prompt_.narrow(0, 0, count).copy_(host_prompt_.narrow(0, staged_rows_, count), /*non_blocking=*/true);
    prompt_piece_.copy_(host_prompt_piece_.select(0, staged_pieces_), /*non_blocking=*/true);
    run(shape);
  });
  staged_rows_ += count;
  ++staged_pieces_;
}

void StepProgram::start(std::uint32_t lane, const LaneSettings& settings, std::span<const float> input) {
  std::int64_t* const integers = host_row<std::int64_t>(host_integers_, lane);
  integers[kPosition] = settings.position;
  integers[kStep] = 0;
  integers[kSlot] = settings.slot;
  integers[kMinSteps] = settings.sampling.min_steps;
  integers[kEndToken] = settings.end_token;
  integers[kTopK] = settings.sampling.top_k;
  integers[kGreedy] = settings.sampling.greedy ? 1 : 0;
  write_philox_keys(settings.sampling.seed, std::span<std::int64_t, kPhiloxKeys>(integers + kKeys, kPhiloxKeys));
  float* const floats = host_row<float>(host_floats_, lane);
  std::copy(settings.sampling.temperature.begin(), settings.sampling.temperature.end(), floats + kTemperature);
  floats[kPenalty] = settings.sampling.repetition_penalty;
  floats[kTopP] = settings.sampling.top_p;
  std::copy(input.begin(), input.end(), host_row<float>(host_input_, lane));
  queue_.run([&] {
    for (const auto& [device, host] : {std::pair{&integers_, &host_integers_}, {&floats_, &host_floats_}, {&input_, &host_input_}}) {
      device->select(0, lane).copy_(host->select(0, lane), /*non_blocking=*/true);
    }
  });
}

void StepProgram::step(engine::Stage stage, std::span<const std::uint32_t> lanes, std::uint32_t positions) {
  const std::uint32_t highest = *std::max_element(lanes.begin(), lanes.end());
  const Shape shape{stage == engine::Stage::kCode ? Kind::kCodeStep : Kind::kTextStep, batch_size_for(options_.batch_sizes, highest + 1),
                    context_for(positions)};
  const at::Tensor host_live = host_live_.select(0, shape.kind == Kind::kCodeStep ? 0 : 1).narrow(0, 0, shape.rows);
  bool* const live = host_live.mutable_data_ptr<bool>();
  std::fill_n(live, shape.rows, false);
  for (const std::uint32_t lane : lanes) live[lane] = true;
  queue_.run([&] {
    recording(shape);
    live_.narrow(0, 0, shape.rows).copy_(host_live, /*non_blocking=*/true);
    run(shape);
  });
}

void StepProgram::finish() {
  if (!std::exchange(unfinished_, false)) return;
  queue_.run([&] {
    host_tokens_.copy_(tokens_, /*non_blocking=*/true);
    queue_.mark();
  });
}

void StepProgram::wait() {
  staged_rows_ = staged_pieces_ = 0;
  queue_.wait();
}

StepTokens StepProgram::tokens(std::uint32_t lane) const {
  StepTokens tokens;
  std::copy_n(host_row<std::int64_t>(host_tokens_, lane), tokens.size(), tokens.begin());
  return tokens;
}

void StepProgram::move_lane(std::uint32_t from, std::uint32_t to, std::uint32_t positions) {
  queue_.run([&] {
    gpt_.move_lane(from, to, positions);
    const auto source = lane_state(from), target = lane_state(to);
    for (std::size_t i = 0; i < source.size(); ++i) target[i].copy_(source[i]);
  });
}

// What moves on with a lane that has started; the integers first.
std::array<at::Tensor, 5> StepProgram::lane_state(std::uint32_t lane) const {
  return {integers_.select(0, lane), floats_.select(0, lane), recent_.select(0, lane), input_.select(0, lane), tokens_.select(0, lane)};
}

std::array<at::Tensor, 2> StepProgram::ring_of(std::uint32_t slot) const {
  const auto of = [&](const at::Tensor& ring) { return ring.narrow(0, ring_.row(slot, 0), ring_.capacity); };
  return {of(ring_.hidden), of(ring_.codes)};
}

SavedLane StepProgram::save_lane(std::uint32_t lane, std::uint32_t slot, std::uint32_t positions, bool started) {
  SavedLane saved;
  queue_.run([&] {
    saved.keys_values = gpt_.save_lane(lane, positions);
    if (!started) return;
    for (const at::Tensor& state : lane_state(lane)) saved.state.push_back(copy_to_host(state));
    for (const at::Tensor& ring : ring_of(slot)) saved.ring.push_back(copy_to_host(ring));
  });
  return saved;
}

void StepProgram::restore_lane(std::uint32_t lane, std::uint32_t slot, const SavedLane& saved) {
  queue_.run([&] {
    gpt_.restore_lane(lane, saved.keys_values);
    if (saved.state.empty()) return;
    saved.state.front().mutable_data_ptr<std::int64_t>()[kSlot] = slot;
    const auto state = lane_state(lane);
    for (std::size_t i = 0; i < state.size(); ++i) state[i].copy_(saved.state[i]);
    const auto ring = ring_of(slot);
    for (std::size_t i = 0; i < ring.size(); ++i) ring[i].copy_(saved.ring[i]);
  });
}

std::size_t StepProgram::saved_bytes(std::uint32_t positions, bool started) const {
  std::size_t bytes = gpt_.saved_bytes(positions);
  if (!started) return bytes;
  for (const at::Tensor* state : {&integers_, &floats_, &recent_, &input_, &tokens_}) bytes += row_bytes(*state);
  return bytes + options_.ring_steps * (row_bytes(ring_.hidden) + row_bytes(ring_.codes));
}

void StepProgram::clear_lane(std::uint32_t lane) {
  queue_.run([&] { gpt_.clear_lane(lane); });
}

}  // namespace tts::model
