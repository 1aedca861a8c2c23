#pragma once
// A context's packets in pieces small enough that a cancel wastes little: tens of milliseconds of sound each, with their place.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tts/audio/format.h"
#include "tts/resume/stream_log.h"

namespace tts::stream {

// Part of a packet, which it keeps alive.
struct Payload {
  std::shared_ptr<const resume::Packet> packet;
  std::size_t offset = 0, size = 0;

  std::span<const std::uint8_t> bytes() const noexcept {
    return packet ? std::span(packet->bytes).subspan(offset, size) : std::span<const std::uint8_t>();
  }
};

struct Piece {
  Payload payload;
  std::uint64_t first_sample = 0, end_sample = 0;  // of its context, at the context's rate
};

// Not thread-safe.
class FrameCutter {
 public:
  // pre_skip: samples that a decoder gives before the context's first; 0 for formats without any.
  FrameCutter(const audio::AudioFormat& format, std::uint32_t pre_skip) noexcept;

  // Appends the pieces of the next packet of the log. Ogg Opus stays as it is: its positions are those of the log.
  void cut(const std::shared_ptr<const resume::Packet>& packet, std::vector<Piece>& pieces);

  std::uint64_t end_sample() const noexcept { return end_; }  // of all that was cut

 private:
  void cut_opus(const std::shared_ptr<const resume::Packet>& packet, std::vector<Piece>& pieces);
  void cut_samples(const std::shared_ptr<const resume::Packet>& packet, std::size_t bytes_per_sample, std::vector<Piece>& pieces);

  const audio::AudioFormat format_;
  const std::uint32_t pre_skip_;
  std::uint64_t opus_packets_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace tts::stream
