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

#include "noise.h"

namespace tts::model {

// Ranges inside which no finite logit can overflow: max penalty ^ 16 stays far below the largest float.
inline constexpr float kMinTemperature = 0.001F, kMaxTemperature = 1000.0F;
inline constexpr float kMinRepetitionPenalty = 0.01F, kMaxRepetitionPenalty = 100.0F;

// The last tokens a row drew from one codebook: what the repetition penalty looks at.
class TokenWindow {
 public:
  static constexpr std::size_t kCapacity = 16;

  void clear() noexcept { size_ = next_ = 0; }
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

struct SampleRequest {
  std::span<const float> logits;           // at least 4
  float temperature = 1.0F;                // kMinTemperature..kMaxTemperature
  float repetition_penalty = 1.0F;         // kMinRepetitionPenalty..kMaxRepetitionPenalty; 1 = off
  float top_p = 1.0F;                      // [0, 1]; 1 = off
  std::uint32_t top_k = 0;                 // 0 = off
  std::optional<std::uint32_t> forbidden;  // the end token while it may not be drawn
  bool greedy = false;                     // the most probable token, the lowest of equals
  std::uint32_t step = 0, codebook = 0;    // of the draw, for the noise
  std::span<const std::uint32_t> recent;   // history inside the penalty's window
};

// Scratch of one thread. Nothing allocates after construction.
class Sampler {
 public:
  struct Candidate {
    float logit;  // after temperature and penalty
    std::uint32_t token;
  };

  explicit Sampler(std::size_t max_vocabulary);

  // nullopt when a logit is NaN or infinite: the model is broken.
  std::optional<std::uint32_t> sample(const SampleRequest& request, const NoiseSource& noise);

  // What the draw is made from: tokens that survive every filter, in no promised order; empty when a logit is not finite.
  // Valid until the next call.
  std::span<const Candidate> survivors(const SampleRequest& request);

 private:
  bool scale_and_penalise(const SampleRequest& request);
  void take_top_k(std::size_t keep);
  void keep_top_p(float top_p);

  std::vector<float> scaled_;
  std::size_t vocabulary_ = 0;  // of the current request
  float highest_ = 0.0F;
  std::vector<Candidate> candidates_;  // capacity max_vocabulary
};

}  // namespace tts::model
