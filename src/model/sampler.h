#pragma once
// One token out of one row of logits (model spec, Generation loop): temperature, repetition penalty, top-P, top-K, end-token
// mask, softmax, draw. The draw is argmax p / e with e ~ Exp(1), which has the distribution of a categorical draw.
//
// Filters, as the reference defines them on the ascending order of logits:
//  top-P drops the entries whose cumulative probability is <= 1 - P, but never the three largest;
//  top-K (at least 3) drops what is below the K-th largest survivor, so ties with the K-th survive.
// Among exact ties the higher token counts as the larger for top-P.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tts/engine/utterance.h"

#include "noise.h"
#include "ops/logits.h"

namespace tts::model {

// The last tokens a row drew from one codebook: what the repetition penalty looks at.
class TokenWindow {
 public:
  static constexpr std::size_t kCapacity = 16;

  void push(std::uint32_t token) noexcept {
    tokens_[next_] = token;
    next_ = (next_ + 1) % kCapacity;
    if (size_ < kCapacity) ++size_;
  }
  std::span<const std::uint32_t> tokens() const noexcept { return {tokens_.data(), size_}; }  // in no promised order

 private:
  std::array<std::uint32_t, kCapacity> tokens_{};
  std::size_t size_ = 0, next_ = 0;
};

// penalty ^ count for every count that a window can hold.
class RepetitionPenalty {
 public:
  RepetitionPenalty(float penalty = 1.0F);  // in the range of requests; 1 = off

  bool off() const noexcept { return powers_[1] == 1.0F; }
  float factor(std::size_t count) const noexcept { return powers_[count]; }

 private:
  std::array<float, TokenWindow::kCapacity + 1> powers_;
};

struct SampleRequest {
  std::span<const float> logits;  // at least 4
  float temperature = 1.0F;       // in the range of requests, inside which no finite logit can overflow
  RepetitionPenalty repetition_penalty = {};
  float top_p = 1.0F;                      // [0, 1]; 1 = off
  std::uint32_t top_k = 0;                 // 0 = off
  std::optional<std::uint32_t> forbidden;  // the end token while it may not be drawn
  bool greedy = false;                     // the most probable token, the lowest of equals
  std::uint32_t step = 0, codebook = 0;    // of the draw, for the noise
  std::span<const std::uint32_t> recent;   // history inside the penalty's window, at most TokenWindow::kCapacity
};

// Scratch of one thread. Nothing allocates after construction.
class Sampler {
 public:
  struct Candidate {
    float logit;  // after temperature and penalty
    std::uint32_t token;
    double weight;  // exp(logit - the highest that may be drawn)
  };

  explicit Sampler(std::size_t max_vocabulary);

  // nullopt when a logit is NaN or infinite: the model is broken.
  std::optional<std::uint32_t> sample(const SampleRequest& request, const NoiseSource& noise);

  // What the draw is made from: tokens that survive every filter, in no promised order; empty when a logit is not finite.
  // Valid until the next call.
  std::span<const Candidate> survivors(const SampleRequest& request);

 private:
  bool scale_and_penalise(const SampleRequest& request);
  std::uint32_t most_probable(std::optional<std::uint32_t> forbidden) noexcept;
  double weight_of(float logit) const noexcept;
  bool walk_few(std::size_t keep, double enough);
  void take_many(std::size_t keep);
  void keep_top_p(double enough);
  void forbid(std::uint32_t token);

  std::vector<float> scaled_;
  std::size_t vocabulary_ = 0;         // of the current request
  ops::LogitSummary summary_;          // of the current request
  std::vector<Candidate> candidates_;  // capacity max_vocabulary
};

}  // namespace tts::model
