#include "spoken_text.h"

#include <algorithm>

namespace tts::stream {
namespace {

constexpr double kUsualSecondsPerCharacter = 0.1;  // English about 0.065, Mandarin about 0.2
constexpr std::size_t kEnoughSentences = 2;        // the last one tells nothing while it is being made

}  // namespace

void SpokenText::sentence(std::uint64_t begin, std::uint64_t end, std::uint64_t first_sample) {
  sentences_.push_back({begin, std::max(begin, end), first_sample});
}

void SpokenText::made(std::uint64_t samples, bool complete) noexcept {
  made_ = std::max(made_, samples);
  complete_ = complete_ || complete;
}

double SpokenText::samples_per_character() const noexcept {
  if (sentences_.size() < kEnoughSentences) return kUsualSecondsPerCharacter * sample_rate_;
  const Sentence& last = sentences_.back();
  const double characters = static_cast<double>(last.begin - sentences_.front().begin);
  return characters > 0 ? static_cast<double>(last.first_sample - sentences_.front().first_sample) / characters
                        : kUsualSecondsPerCharacter * sample_rate_;
}

std::uint64_t SpokenText::characters(std::uint64_t samples) const noexcept {
  const auto after = std::upper_bound(sentences_.begin(), sentences_.end(), samples,
                                      [](std::uint64_t at, const Sentence& sentence) { return at < sentence.first_sample; });
  if (after == sentences_.begin()) return 0;
  const Sentence& current = *(after - 1);
  const std::uint64_t length = current.end - current.begin;
  double whole = 0;  // samples of the sentence
  if (after != sentences_.end()) {
    whole = static_cast<double>(after->first_sample - current.first_sample);
  } else {
    const double there = static_cast<double>(made_ - std::min(made_, current.first_sample));
    whole = complete_ ? there : std::max(there, static_cast<double>(length) * samples_per_character());
  }
  const double share = whole > 0 ? std::min(1.0, static_cast<double>(samples - current.first_sample) / whole) : 1.0;
  return current.begin + static_cast<std::uint64_t>(share * static_cast<double>(length));
}

}  // namespace tts::stream
