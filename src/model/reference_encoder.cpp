#include "reference_encoder.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "ops/aligned_buffer.h"
#include "real_fft.h"

namespace tts::model {
namespace {

constexpr float kMinMagnitude = 1e-5F;
constexpr std::size_t kChunkRows = 64;  // rows that go through the network at once
constexpr std::size_t kHalvingKernel = 4, kHalvingStride = 2, kHalvingPad = 1;

// Runs a whole matrix through a network in bounded chunks.
template <class Forward>
std::vector<float> run_in_chunks(std::span<const float> in, std::size_t width, std::span<const ContextSpec> contexts, std::size_t max_width,
                                 std::size_t max_inner, Forward&& forward) {
  StreamRows rows({.rows = kChunkRows + total_pad(contexts) + 2 * max_pad(contexts), .width = max_width, .inner = max_inner, .segments = 1});
  StreamState state(contexts);
  std::vector<float> out;
  const std::size_t total = in.size() / width;
  for (std::size_t row = 0; row < total; row += kChunkRows) {
    const std::size_t count = std::min(kChunkRows, total - row);
    rows.clear(width);
    const StreamRows::Segment segment{.rows = {.begin = static_cast<std::int64_t>(row), .rows = count}, .last = row + count == total};
    std::copy_n(in.data() + row * width, count * width, rows.append(segment));
    forward(rows, std::span(&state, 1));
    const StreamRows::Run& made = rows.segments().front().rows;
    out.insert(out.end(), rows.row(made.first), rows.row(made.first + made.rows));
  }
  return out;
}

// Sample `index` of the signal mirrored about its first and last sample (which are not repeated).
float reflected(std::span<const float> pcm, std::ptrdiff_t index) {
  const auto last = static_cast<std::ptrdiff_t>(pcm.size()) - 1;
  if (index < 0) index = -index;
  if (index > last) index = 2 * last - index;
  return pcm[static_cast<std::size_t>(index)];
}

}  // namespace

ReferenceEncoder::ReferenceEncoder(TensorReader& reader, const engine::Architecture& architecture, std::span<const float> coef)
    : sizes_(architecture.dvae_encoder),
      sample_rate_(architecture.sample_rate),
      hop_(architecture.hop),
      n_mels_(architecture.n_mels),
      coef_(coef.begin(), coef.end()),
      window_(reader.get("preprocessor_mel.mel_spec.spectrogram.window", {architecture.n_fft})),
      first_conv_(
          reader,
          WindowConv::Config{.name = "downsample_conv.0", .inputs = n_mels_, .outputs = sizes_.idim, .activation = ops::Activation::kGelu},
          first_context_),
      stack_(reader, "encoder", sizes_, ops::WeightFormat::kFloat32, stack_context_),
      output_(ops::WeightFormat::kFloat32, SoundLinear::Grade::kPrecise,
              reader.get("encoder.conv_out.weight", {sizes_.odim, sizes_.hidden, 1}), sizes_.odim, 1) {
  const std::size_t bins = architecture.n_fft / 2 + 1, dim = sizes_.idim;
  const std::vector<float> bank = reader.get("preprocessor_mel.mel_spec.mel_scale.fb", {bins, n_mels_});
  std::vector<float> transposed(bank.size());
  for (std::size_t bin = 0; bin < bins; ++bin) {
    for (std::size_t mel = 0; mel < n_mels_; ++mel) transposed[mel * bins + bin] = bank[bin * n_mels_ + mel];
  }
  filter_bank_ = ops::make_linear(ops::WeightFormat::kFloat32, transposed.data(), n_mels_, bins);
  const std::vector<float> halving =
      kernel_major(reader.get("downsample_conv.2.weight", {dim, dim, kHalvingKernel}), dim, dim, kHalvingKernel);
  const std::vector<float> bias = reader.get("downsample_conv.2.bias", {dim});
  halving_conv_ = ops::make_linear(ops::WeightFormat::kFloat32, halving.data(), dim, dim * kHalvingKernel, bias.data());
}

std::vector<float> ReferenceEncoder::log_mel(ops::ComputePool& pool, std::span<const float> pcm) const {
  const std::size_t size = window_.size(), bins = size / 2 + 1, frames = 1 + pcm.size() / hop_;
  assert(pcm.size() > size / 2);
  const RealFft fft(size);
  ops::AlignedBuffer time(size), spectrum(size + 2), work(size);
  std::vector<float> mel(frames * n_mels_);
  ops::LinearInput magnitudes(ops::WeightFormat::kFloat32, frames, bins);
  for (std::size_t f = 0; f < frames; ++f) {
    const auto begin = static_cast<std::ptrdiff_t>(f * hop_) - static_cast<std::ptrdiff_t>(size / 2);
    for (std::size_t i = 0; i < size; ++i) time.data()[i] = window_[i] * reflected(pcm, begin + static_cast<std::ptrdiff_t>(i));
    fft.forward(time.data(), spectrum.data(), work.data());
    for (std::size_t i = 0; i < bins; ++i) {
      const float re = spectrum.data()[2 * i], im = spectrum.data()[2 * i + 1];
      magnitudes.row(f)[i] = std::sqrt(re * re + im * im);
    }
  }
  filter_bank_->forward(pool, {magnitudes, frames}, ops::MutableRows{mel.data(), n_mels_});
  for (std::size_t i = 0; i < mel.size(); ++i) mel[i] = std::log(std::max(mel[i], kMinMagnitude)) / coef_[i % n_mels_];
  return mel;
}

std::vector<float> ReferenceEncoder::encode_mel(ops::ComputePool& pool, std::span<const float> mel) const {
  const std::size_t dim = sizes_.idim;
  const std::vector<float> wide = run_in_chunks(mel, n_mels_, first_context_, std::max(n_mels_, dim), 0,
                                                [&](StreamRows& rows, auto states) { first_conv_.forward(pool, rows, states); });
  ops::LinearInput padded(ops::WeightFormat::kFloat32, wide.size() / dim + 2 * kHalvingPad, dim);  // zero around the copy
  std::copy(wide.begin(), wide.end(), padded.row(kHalvingPad));
  const std::size_t frames = wide.size() / dim / kHalvingStride;
  std::vector<float> halved(frames * dim);
  if (frames > 0) {
    halving_conv_->forward(pool, {padded, frames, 0, kHalvingStride}, ops::MutableRows{halved.data(), dim}, ops::Activation::kGelu);
  }
  const std::size_t hidden = sizes_.hidden;
  return run_in_chunks(halved, dim, stack_context_, std::max<std::size_t>(ConvStack::max_width(sizes_), sizes_.odim),
                       ConvStack::max_inner(sizes_), [&](StreamRows& rows, auto states) {
                         stack_.forward(pool, rows, states);
                         rows.map_linear(pool, output_, [&](const float* in, float* out) { std::copy_n(in, hidden, out); });
                       });
}

Result<std::vector<engine::CodeFrame>> ReferenceEncoder::encode(ops::ComputePool& pool, const Gfsq& quantizer,
                                                                std::span<const float> pcm) const {
  const auto max_samples = static_cast<std::size_t>(kMaxReferenceSeconds * sample_rate_);
  if (pcm.size() < window_.size()) {
    return Error{ErrorCode::kInvalidArgument, "the reference recording is shorter than " + std::to_string(window_.size()) + " samples"};
  }
  if (pcm.size() > max_samples) {
    return Error{ErrorCode::kTooLarge, "the reference recording is longer than " + std::to_string(max_samples) + " samples"};
  }
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(pcm.begin(), pcm.end(), finite))
    return Error{ErrorCode::kInvalidArgument, "the reference recording holds NaN or infinity"};
  const std::vector<float> vectors = encode_mel(pool, log_mel(pool, pcm));
  if (!std::all_of(vectors.begin(), vectors.end(), finite))
    return Error{ErrorCode::kEngineFailure, "the encoder failed on the reference recording"};
  std::vector<engine::CodeFrame> codes(vectors.size() / quantizer.dim());
  for (std::size_t t = 0; t < codes.size(); ++t) codes[t] = quantizer.encode(vectors.data() + t * quantizer.dim());
  return codes;
}

}  // namespace tts::model
