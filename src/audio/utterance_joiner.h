#pragma once
// Overlap-add of consecutive utterances.

#include <cstddef>
#include <span>
#include <vector>

namespace tts::audio {

// Not thread-safe. The last `fade` samples of what was joined so far are held back until more come, because an utterance may end
// there, unless it is known that more follows. At a meeting, overlap = min(fade, samples held, samples of the new utterance): power stays constant across it
// (utterances are independent signals), and what comes out is shorter than the sum of the utterances by the overlaps.
// Empty utterances leave no trace. Output depends on the utterances alone, not on how they are cut into calls.
class UtteranceJoiner {
 public:
  // fade: samples of overlap; 0 = plain concatenation, nothing is ever held back.
  explicit UtteranceJoiner(std::size_t fade);

  void push(std::span<const float> samples, std::vector<float>& out, bool more_follows = false);
  void end_utterance();
  void finish(std::vector<float>& out);

 private:
  void extend(std::span<const float> samples, std::vector<float>& out, std::size_t hold_back);
  void join();

  const std::size_t fade_;
  std::vector<float> tail_;  // at most fade_ samples, not yet given out
  std::vector<float> head_;  // start of a new utterance that is still too short to be joined
  bool joining_ = false;     // the next samples start a new utterance
};

}  // namespace tts::audio
