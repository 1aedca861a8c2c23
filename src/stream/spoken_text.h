#pragma once
// How much of a context's text has been spoken when so many of its samples have been heard.

#include <cstdint>
#include <vector>

namespace tts::stream {

// Sentences whose end is known are divided evenly over their samples; the one that is being made is taken to be spoken as fast as those
// before it, or as people do. Not thread-safe.
class SpokenText {
 public:
  explicit SpokenText(std::uint32_t sample_rate) noexcept : sample_rate_(sample_rate) {}

  // The next sentence: code points [begin, end) of the text, from this sample on.
  void sentence(std::uint64_t begin, std::uint64_t end, std::uint64_t first_sample);
  // So many samples are there; `complete`: they are all.
  void made(std::uint64_t samples, bool complete) noexcept;

  std::uint64_t characters(std::uint64_t samples) const noexcept;  // at most the end of the last sentence

 private:
  struct Sentence {
    std::uint64_t begin = 0, end = 0, first_sample = 0;
  };

  double samples_per_character() const noexcept;

  const std::uint32_t sample_rate_;
  std::vector<Sentence> sentences_;
  std::uint64_t made_ = 0;
  bool complete_ = false;
};

}  // namespace tts::stream
