#include "frame_cutter.h"

#include <algorithm>

namespace tts::stream {
namespace {

constexpr std::uint32_t kOpusPacketsPerSecond = 50;
constexpr std::size_t kOpusPacketsPerPiece = 3;
constexpr std::uint32_t kPiecesPerSecond = 16;  // of PCM and the laws

}  // namespace

FrameCutter::FrameCutter(const audio::AudioFormat& format, std::uint32_t pre_skip) noexcept : format_(format), pre_skip_(pre_skip) {}

void FrameCutter::cut(const std::shared_ptr<const resume::Packet>& packet, std::vector<Piece>& pieces) {
  if (packet->bytes.empty()) return;
  switch (format_.container) {
    case audio::Container::kOpusPackets: return cut_opus(packet, pieces);
    case audio::Container::kPcm: return cut_samples(packet, 2, pieces);
    case audio::Container::kMulaw:
    case audio::Container::kAlaw: return cut_samples(packet, 1, pieces);
    default: break;
  }
  end_ = std::max(end_, packet->first_sample);
  pieces.push_back({.payload = {packet, 0, packet->bytes.size()}, .first_sample = packet->first_sample, .end_sample = end_});
}

// What the n-th packet gives to hear ends at (n + 1) packets less the pre-skip.
void FrameCutter::cut_opus(const std::shared_ptr<const resume::Packet>& packet, std::vector<Piece>& pieces) {
  const std::uint64_t per_packet = format_.sample_rate / kOpusPacketsPerSecond;
  const auto heard = [&](std::uint64_t packets) { return packets * per_packet - std::min<std::uint64_t>(packets * per_packet, pre_skip_); };
  const auto& bytes = packet->bytes;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t begin = at;
    const std::uint64_t first = heard(opus_packets_);
    for (std::size_t count = 0; count < kOpusPacketsPerPiece && at + 2 <= bytes.size(); ++count, ++opus_packets_) {
      at += 2 + (bytes[at] | std::size_t{bytes[at + 1]} << 8U);
    }
    at = at == begin ? bytes.size() : std::min(at, bytes.size());
    end_ = heard(opus_packets_);
    pieces.push_back({.payload = {packet, begin, at - begin}, .first_sample = first, .end_sample = end_});
  }
}

void FrameCutter::cut_samples(const std::shared_ptr<const resume::Packet>& packet, std::size_t bytes_per_sample, std::vector<Piece>& pieces) {
  const std::size_t most = std::max<std::size_t>(format_.sample_rate / kPiecesPerSecond, 1) * bytes_per_sample;
  std::uint64_t first = packet->first_sample;
  for (std::size_t at = 0; at < packet->bytes.size(); at += most) {
    const std::size_t size = std::min(most, packet->bytes.size() - at);
    end_ = first + size / bytes_per_sample;
    pieces.push_back({.payload = {packet, at, size}, .first_sample = first, .end_sample = end_});
    first = end_;
  }
}

}  // namespace tts::stream
