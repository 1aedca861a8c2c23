#pragma once
// Reads a stream log to its end, as a connection does.

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "tts/resume/stream_log.h"

namespace tts::test {

// Blocks until packet `seq` is there or the log has ended; null = ended without it.
inline std::shared_ptr<const resume::Packet> wait_packet(resume::StreamLog& log, std::uint32_t seq) {
  auto there = std::make_shared<std::promise<void>>();
  log.notify_when(seq, [there] { there->set_value(); });
  there->get_future().wait();
  return log.next(seq);
}

inline void wait_end(resume::StreamLog& log) {  // without acknowledging anything
  for (std::uint32_t seq = 1; !log.ended(); ++seq) wait_packet(log, seq);
}

// All packets from `seq` on, each acknowledged as it is read.
inline std::vector<std::shared_ptr<const resume::Packet>> drain(resume::StreamLog& log, std::uint32_t seq = 1) {
  std::vector<std::shared_ptr<const resume::Packet>> packets;
  while (auto packet = wait_packet(log, seq)) {
    packets.push_back(std::move(packet));
    log.acknowledge(seq++);
  }
  return packets;
}

inline std::vector<std::uint8_t> joined(const std::vector<std::shared_ptr<const resume::Packet>>& packets) {
  std::vector<std::uint8_t> bytes;
  for (const auto& packet : packets) bytes.insert(bytes.end(), packet->bytes.begin(), packet->bytes.end());
  return bytes;
}

}  // namespace tts::test
