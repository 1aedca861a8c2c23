#pragma once
// Cuts a PCM stream into packets of constant length, whatever pieces it comes in.

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tts::audio {

// Samples in `length` at `sample_rate`, at least 1. 100 ms at 24 kHz = 2400.
constexpr std::size_t packet_samples(std::uint32_t sample_rate, std::chrono::milliseconds length) noexcept {
  const auto samples = length.count() > 0 ? static_cast<std::uint64_t>(length.count()) * sample_rate / 1000 : 0;
  return samples > 0 ? static_cast<std::size_t>(samples) : 1;
}

// Not thread-safe. Sinks are called with std::span<const float> that is valid only during the call.
class Packetizer {
 public:
  explicit Packetizer(std::size_t samples_per_packet) : size_(samples_per_packet) {
    assert(size_ > 0);
    held_.reserve(size_);
  }

  // Calls sink once for every packet that became full; each holds exactly samples_per_packet.
  template <class Sink>
  void push(std::span<const float> samples, Sink&& sink) {
    if (!held_.empty()) {
      const auto missing = samples.first(std::min(samples.size(), size_ - held_.size()));
      held_.insert(held_.end(), missing.begin(), missing.end());
      samples = samples.subspan(missing.size());
      if (held_.size() < size_) return;
      sink(std::span<const float>(held_));
      held_.clear();
    }
    for (; samples.size() >= size_; samples = samples.subspan(size_)) sink(samples.first(size_));
    held_.assign(samples.begin(), samples.end());
  }

  // Calls sink with the shorter last packet; not at all when the stream ended on a packet's edge. The stream may start anew.
  template <class Sink>
  void finish(Sink&& sink) {
    if (!held_.empty()) sink(std::span<const float>(held_));
    held_.clear();
  }

 private:
  const std::size_t size_;
  std::vector<float> held_;
};

}  // namespace tts::audio
