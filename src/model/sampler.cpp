#include "sampler.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

#include "ops/kernels.h"

namespace tts::model {
namespace {

constexpr std::size_t kMinKeep = 3;  // neither filter leaves fewer
constexpr std::size_t kFew = 64;     // so many candidates are searched for the largest again and again sooner than ordered

// Larger logits first; of equals, the higher token.
bool larger(const Sampler::Candidate& a, const Sampler::Candidate& b) noexcept {
  return a.logit != b.logit ? a.logit > b.logit : a.token > b.token;
}

// The same order as one number. Adding zero makes the two zeros one.
std::uint64_t order_key(float logit, std::uint32_t token) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0F);
  const std::uint32_t ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return std::uint64_t{ascending} << 32 | token;
}

}  // namespace

RepetitionPenalty::RepetitionPenalty(float penalty) {
  for (std::size_t count = 0; count < powers_.size(); ++count)
    powers_[count] = static_cast<float>(std::pow(double{penalty}, static_cast<double>(count)));
}

Sampler::Sampler(std::size_t max_vocabulary) : scaled_(max_vocabulary) { candidates_.reserve(max_vocabulary); }

bool Sampler::scale_and_penalise(const SampleRequest& request) {
  vocabulary_ = request.logits.size();
  assert(vocabulary_ >= kMinKeep + 1 && vocabulary_ <= scaled_.size() && request.recent.size() <= TokenWindow::kCapacity);
  ops::divide(request.logits.data(), request.temperature, vocabulary_, scaled_.data());
  if (!request.repetition_penalty.off()) {
    for (std::size_t i = 0; i < request.recent.size(); ++i) {
      const std::uint32_t token = request.recent[i];
      const auto begin = request.recent.begin(), here = begin + static_cast<std::ptrdiff_t>(i);
      if (std::find(begin, here, token) != here) continue;  // counted at its first place
      const float factor = request.repetition_penalty.factor(static_cast<std::size_t>(std::count(here, request.recent.end(), token)));
      float& value = scaled_[token];
      value = value < 0.0F ? value * factor : value / factor;
    }
  }
  ops::summarise(scaled_.data(), vocabulary_, summary_);
  return summary_.finite;
}

double Sampler::weight_of(float logit) const noexcept { return std::exp(double{logit} - double{summary_.highest}); }

// Takes the largest, one after the other, until top-P is content or top-K complete. Candidates that top-K drops lie below all others, so
// that either filter may end the walk. False, and nothing taken, when too many compete.
bool Sampler::walk_few(std::size_t keep, double enough) {
  std::array<std::uint32_t, kFew> tokens;
  const std::size_t count = ops::indices_reaching(scaled_.data(), vocabulary_, ops::reached_by(summary_, keep), tokens);
  if (count > kFew) return false;
  std::array<std::uint64_t, kFew> keys;
  for (std::size_t i = 0; i < count; ++i) keys[i] = order_key(scaled_[tokens[i]], tokens[i]);
  double mass = 0.0;
  for (std::size_t left = count; left > 0 && (candidates_.size() < kMinKeep || mass < enough); --left) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < left; ++i) best = keys[i] > keys[best] ? i : best;
    const auto token = static_cast<std::uint32_t>(keys[best]);
    keys[best] = keys[left - 1];
    const float logit = scaled_[token];
    if (candidates_.size() >= keep && logit < candidates_[keep - 1].logit) break;
    candidates_.push_back({logit, token, weight_of(logit)});
    mass += candidates_.back().weight;
  }
  return true;
}

void Sampler::take_many(std::size_t keep) {
  for (std::uint32_t v = 0; v < vocabulary_; ++v) candidates_.push_back({scaled_[v], v, 0.0});
  if (keep >= vocabulary_) return;
  const auto kth = candidates_.begin() + static_cast<std::ptrdiff_t>(keep - 1);
  std::nth_element(candidates_.begin(), kth, candidates_.end(), larger);
  const float threshold = kth->logit;
  candidates_.erase(std::partition(kth, candidates_.end(), [&](const Candidate& c) { return c.logit >= threshold; }), candidates_.end());
}

// Walks down from the largest while the mass of strictly earlier entries leaves a rest above 1 - P.
void Sampler::keep_top_p(double enough) {
  const auto later = [](const Candidate& a, const Candidate& b) { return larger(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), later);
  double mass = 0.0;
  auto end = candidates_.end();  // [end, ...) holds the kept ones, smallest first
  for (std::size_t kept = 0; end != candidates_.begin() && (kept < kMinKeep || mass < enough); ++kept) {
    std::pop_heap(candidates_.begin(), end, later);
    --end;
    mass += weight_of(end->logit);
  }
  candidates_.erase(candidates_.begin(), end);
}

void Sampler::forbid(std::uint32_t token) {
  const auto at = std::find_if(candidates_.begin(), candidates_.end(), [&](const Candidate& c) { return c.token == token; });
  if (at == candidates_.end()) return;
  const bool was_highest = at->logit == summary_.highest;
  *at = candidates_.back();
  candidates_.pop_back();
  if (!was_highest) return;
  // Next to a token that outweighed them all, the others may be too light for a double.
  summary_.highest = std::max_element(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
                       return a.logit < b.logit;
                     })->logit;
  for (Candidate& candidate : candidates_) candidate.weight = weight_of(candidate.logit);
}

std::span<const Sampler::Candidate> Sampler::survivors(const SampleRequest& request) {
  candidates_.clear();
  if (!scale_and_penalise(request)) return {};
  const std::size_t keep = request.top_k == 0 ? vocabulary_ : std::min(vocabulary_, std::max<std::size_t>(request.top_k, kMinKeep));
  const double enough = request.top_p < 1.0F ? double{request.top_p} * ops::sum_exp(scaled_.data(), vocabulary_, summary_.highest)
                                             : std::numeric_limits<double>::infinity();
  if (keep > ops::kLogitGroups || keep == vocabulary_ || !walk_few(keep, enough)) {
    take_many(keep);
    if (request.top_p < 1.0F) keep_top_p(enough);
    for (Candidate& candidate : candidates_) candidate.weight = weight_of(candidate.logit);
  }
  if (request.forbidden) forbid(*request.forbidden);
  return candidates_;
}

// The two largest survive every filter, so that the filters need not run.
std::uint32_t Sampler::most_probable(std::optional<std::uint32_t> forbidden) noexcept {
  if (forbidden) {
    scaled_[*forbidden] = std::numeric_limits<float>::lowest();
    ops::summarise(scaled_.data(), vocabulary_, summary_);
  }
  std::array<std::uint32_t, 2> first{};
  ops::indices_reaching(scaled_.data(), vocabulary_, summary_.highest, first);
  return first[0] == forbidden ? first[1] : first[0];
}

std::optional<std::uint32_t> Sampler::sample(const SampleRequest& request, const NoiseSource& noise) {
  if (request.greedy) {
    if (!scale_and_penalise(request)) return std::nullopt;
    return most_probable(request.forbidden);
  }
  std::optional<std::uint32_t> drawn;
  double best = -1.0;
  for (const Candidate& candidate : survivors(request)) {
    const double score = candidate.weight / double{noise.exponential(request.step, request.codebook, candidate.token)};
    if (score > best || (score == best && candidate.token < *drawn)) {
      best = score;
      drawn = candidate.token;
    }
  }
  return drawn;
}

}  // namespace tts::model
