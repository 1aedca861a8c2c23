#include "utterance_joiner.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tts::audio {

UtteranceJoiner::UtteranceJoiner(std::size_t fade) : fade_(fade) {
  tail_.reserve(fade_);
  head_.reserve(fade_);
}

void UtteranceJoiner::push(std::span<const float> samples, std::vector<float>& out, bool more_follows) {
  if (joining_) {
    const auto wanted = samples.first(std::min(samples.size(), tail_.size() - head_.size()));
    head_.insert(head_.end(), wanted.begin(), wanted.end());
    samples = samples.subspan(wanted.size());
    if (head_.size() < tail_.size()) return;
    join();
  }
  extend(samples, out, more_follows ? 0 : fade_);
}

void UtteranceJoiner::end_utterance() {
  if (!head_.empty()) join();
  joining_ = !tail_.empty();
}

void UtteranceJoiner::finish(std::vector<float>& out) {
  end_utterance();
  out.insert(out.end(), tail_.begin(), tail_.end());
  tail_.clear();
  joining_ = false;
}

// Appends to the joined signal, of which the last `hold_back` samples stay here.
void UtteranceJoiner::extend(std::span<const float> samples, std::vector<float>& out, std::size_t hold_back) {
  const std::size_t known = tail_.size() + samples.size();
  const std::size_t ready = known - std::min(known, hold_back);
  const std::size_t from_tail = std::min(ready, tail_.size());
  const std::size_t from_samples = ready - from_tail;
  out.insert(out.end(), tail_.begin(), tail_.begin() + static_cast<std::ptrdiff_t>(from_tail));
  tail_.erase(tail_.begin(), tail_.begin() + static_cast<std::ptrdiff_t>(from_tail));
  out.insert(out.end(), samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(from_samples));
  tail_.insert(tail_.end(), samples.begin() + static_cast<std::ptrdiff_t>(from_samples), samples.end());
}

// Blends head_ into the end of tail_.
void UtteranceJoiner::join() {
  const std::size_t overlap = head_.size();
  float* const into = tail_.data() + (tail_.size() - overlap);
  for (std::size_t i = 0; i < overlap; ++i) {
    const double phase = std::numbers::pi / 2 * (static_cast<double>(i) + 0.5) / static_cast<double>(overlap);
    into[i] = static_cast<float>(into[i] * std::cos(phase) + head_[i] * std::sin(phase));
  }
  head_.clear();
  joining_ = false;
}

}  // namespace tts::audio
