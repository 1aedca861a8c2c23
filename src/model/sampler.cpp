#include "sampler.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "ops/kernels.h"

namespace tts::model {
namespace {

constexpr std::size_t kMinKeep = 3;        // neither filter leaves fewer
constexpr std::size_t kMaxThreshold = 64;  // largest K found by insertion; beyond that a partial selection is faster

// Larger logits first; of equals, the higher token.
bool larger(const Sampler::Candidate& a, const Sampler::Candidate& b) noexcept {
  return a.logit != b.logit ? a.logit > b.logit : a.token > b.token;
}

// The K-th largest of `values`, K <= kMaxThreshold and K <= values.size(): a sorted window that few values enter.
float kth_largest(std::span<const float> values, std::size_t k) noexcept {
  std::array<float, kMaxThreshold> top;  // descending
  std::size_t size = 0;
  for (const float value : values) {
    if (size == k && !(value > top[k - 1])) continue;
    std::size_t place = size < k ? size++ : k - 1;
    for (; place > 0 && top[place - 1] < value; --place) top[place] = top[place - 1];
    top[place] = value;
  }
  return top[k - 1];
}

}  // namespace

Sampler::Sampler(std::size_t max_vocabulary) : scaled_(max_vocabulary) { candidates_.reserve(max_vocabulary); }

bool Sampler::scale_and_penalise(const SampleRequest& request) {
  vocabulary_ = request.logits.size();
  assert(vocabulary_ >= kMinKeep + 1 && vocabulary_ <= scaled_.size());
  for (std::size_t v = 0; v < vocabulary_; ++v) scaled_[v] = request.logits[v] / request.temperature;
  if (request.repetition_penalty != 1.0F) {
    for (std::size_t i = 0; i < request.recent.size(); ++i) {
      const std::uint32_t token = request.recent[i];
      const auto begin = request.recent.begin(), here = begin + static_cast<std::ptrdiff_t>(i);
      if (std::find(begin, here, token) != here) continue;  // counted at its first place
      const auto factor = static_cast<float>(std::pow(double{request.repetition_penalty}, std::count(here, request.recent.end(), token)));
      float& value = scaled_[token];
      value = value < 0.0F ? value * factor : value / factor;
    }
  }
  highest_ = ops::max_value(scaled_.data(), vocabulary_);
  return std::isfinite(ops::sum(scaled_.data(), vocabulary_));
}

void Sampler::take_top_k(std::size_t keep) {
  candidates_.clear();
  const std::span<const float> values(scaled_.data(), vocabulary_);
  if (keep > kMaxThreshold && keep < vocabulary_) {
    for (std::uint32_t v = 0; v < vocabulary_; ++v) candidates_.push_back({values[v], v});
    const auto kth = candidates_.begin() + static_cast<std::ptrdiff_t>(keep - 1);
    std::nth_element(candidates_.begin(), kth, candidates_.end(), larger);
    const float threshold = kth->logit;
    candidates_.erase(std::partition(kth, candidates_.end(), [&](const Candidate& c) { return c.logit >= threshold; }), candidates_.end());
    return;
  }
  const float threshold = keep < vocabulary_ ? kth_largest(values, keep) : -std::numeric_limits<float>::infinity();
  for (std::uint32_t v = 0; v < vocabulary_; ++v) {
    if (values[v] >= threshold) candidates_.push_back({values[v], v});
  }
}

// Walks down from the largest while the mass of strictly earlier entries leaves a rest above 1 - P. Candidates that top-K has
// already dropped lie below all others, so cutting them first changes nothing but the work.
void Sampler::keep_top_p(float top_p) {
  const double total = ops::sum_exp(scaled_.data(), vocabulary_, highest_);
  const auto later = [](const Candidate& a, const Candidate& b) { return larger(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), later);
  double mass = 0.0;
  auto end = candidates_.end();  // [end, ...) holds the kept ones, smallest first
  for (std::size_t kept = 0; end != candidates_.begin() && (kept < kMinKeep || mass < double{top_p} * total); ++kept) {
    std::pop_heap(candidates_.begin(), end, later);
    --end;
    mass += std::exp(double{end->logit} - double{highest_});
  }
  candidates_.erase(candidates_.begin(), end);
}

std::span<const Sampler::Candidate> Sampler::survivors(const SampleRequest& request) {
  candidates_.clear();
  if (!scale_and_penalise(request)) return {};
  take_top_k(request.top_k == 0 ? vocabulary_ : std::max<std::size_t>(request.top_k, kMinKeep));
  if (request.top_p < 1.0F) keep_top_p(request.top_p);
  if (request.forbidden) std::erase_if(candidates_, [&](const Candidate& c) { return c.token == *request.forbidden; });
  return candidates_;
}

std::optional<std::uint32_t> Sampler::sample(const SampleRequest& request, const NoiseSource& noise) {
  if (request.greedy) {  // the two largest survive every filter, so they need not run
    if (!scale_and_penalise(request)) return std::nullopt;
    std::optional<std::uint32_t> best;
    for (std::uint32_t v = 0; v < vocabulary_; ++v) {
      if (v != request.forbidden && (!best || scaled_[v] > scaled_[*best])) best = v;
    }
    return best;
  }
  std::optional<std::uint32_t> drawn;
  double best = -1.0;
  for (const Candidate& candidate : survivors(request)) {
    const double score =
        std::exp(double{candidate.logit} - double{highest_}) / double{noise.exponential(request.step, request.codebook, candidate.token)};
    if (score > best || (score == best && candidate.token < *drawn)) {
      best = score;
      drawn = candidate.token;
    }
  }
  return drawn;
}

}  // namespace tts::model
