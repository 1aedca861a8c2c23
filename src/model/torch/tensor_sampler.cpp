#include "torch/tensor_sampler.h"

#include <algorithm>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace tts::model {
namespace {

constexpr std::int64_t kMinKeep = 3;  // neither filter leaves fewer

// [rows, ...] -> [rows * codebooks, 1]: one value a row of logits.
at::Tensor per_row(const at::Tensor& values, std::int64_t codebooks) {
  return values.unsqueeze(1).expand({values.size(0), codebooks}).reshape({-1, 1});
}

// Multiplies or divides the logits of recent tokens in place. `padded` has one column more than there are tokens, for the entries of
// the window that hold none.
void penalise(const at::Tensor& padded, const at::Tensor& recent, const at::Tensor& count, const at::Tensor& penalty) {
  const std::int64_t nobody = padded.size(1) - 1;
  const at::Tensor token = at::where(at::arange(recent.size(1), recent.options()) < count, recent, nobody);
  const at::Tensor times = (token.unsqueeze(2) == token.unsqueeze(1)).sum(2);  // equal tokens get equal values, so order is no matter
  const at::Tensor factor = at::pow(penalty.to(at::kDouble), times).to(at::kFloat);
  const at::Tensor value = padded.gather(1, token);
  padded.scatter_(1, token, at::where(value < 0, value * factor, value / factor));
}

}  // namespace

at::Tensor sample(const TensorSampleRequest& request) {
  const std::int64_t rows = request.logits.size(0), codebooks = request.logits.size(1), vocabulary = request.logits.size(2);
  const at::TensorOptions integers = request.top_k.options();
  const auto each = [&](const at::Tensor& values) { return per_row(values, codebooks); };

  const at::Tensor padded = at::empty({rows * codebooks, vocabulary + 1}, request.logits.options());
  at::Tensor z = padded.narrow(1, 0, vocabulary);
  at::div_out(z, request.logits.view({-1, vocabulary}), request.temperature.reshape({-1, 1}));
  penalise(padded, request.recent.reshape({rows * codebooks, -1}), each(request.recent_count), each(request.repetition_penalty));

  // Larger logits first; of equals, the higher token.
  const auto [sorted, from_end] = z.flip(1).sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  const at::Tensor highest = sorted.narrow(1, 0, 1).to(at::kDouble);
  const at::Tensor place = at::arange(vocabulary, integers);

  const at::Tensor mass = (sorted.to(at::kDouble) - highest).exp_();
  const at::Tensor mass_before = mass.cumsum(1) - mass;
  const at::Tensor top_p = each(request.top_p).to(at::kDouble);
  const at::Tensor in_top_p = (mass_before < top_p * mass.sum(1, /*keepdim=*/true)).logical_or_(place < kMinKeep).logical_or_(top_p >= 1);

  const at::Tensor top_k = each(request.top_k);
  const at::Tensor keep = at::where(top_k == 0, vocabulary, top_k.clamp(std::min(kMinKeep, vocabulary), vocabulary));
  const at::Tensor in_top_k = sorted >= sorted.gather(1, keep - 1);

  const at::Tensor kept =
      at::zeros(z.sizes(), z.options().dtype(at::kBool)).scatter_(1, at::rsub(from_end, vocabulary - 1), in_top_p.logical_and(in_top_k));
  const at::Tensor forbidden = place == each(request.forbidden);
  const at::Tensor refused = kept.logical_not().logical_or_(forbidden);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  // Relative to the largest that may be drawn: next to a forbidden one the others may be too light for a double.
  const at::Tensor top = z.masked_fill(refused, kNever).amax(1, /*keepdim=*/true).to(at::kDouble);
  const at::Tensor score = (z.to(at::kDouble) - top).exp_().div_(request.noise.view({-1, vocabulary}));
  const at::Tensor drawn = score.masked_fill_(refused, -1).argmax(1);
  const at::Tensor largest = z.masked_fill(forbidden, kNever).argmax(1);

  const at::Tensor token = at::where(each(request.greedy).squeeze(1), largest, drawn);
  return at::where(at::isfinite(z.sum(1)), token, kBrokenToken).view({rows, codebooks});
}

}  // namespace tts::model
