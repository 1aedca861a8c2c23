#pragma once
// One utterance of a conversation while it runs: where its audio comes from and what of it was sent.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tts/api/stream_messages.h"
#include "tts/base/clock.h"
#include "tts/synthesis/synthesis.h"

#include "bitrate_control.h"
#include "frame_cutter.h"
#include "spoken_text.h"

namespace tts::stream {

// Belongs to its session, under whose lock it is used.
struct Context {
  Context(std::uint16_t number, const api::StreamStart& start, std::unique_ptr<synthesis::Synthesis> source, TimePoint now)
      : id(number),
        name(start.context),
        timestamps(start.timestamps),
        realtime(start.realtime),
        sample_rate(start.request.format.sample_rate),
        synthesis(std::move(source)),
        cutter(start.request.format, synthesis->pre_skip()),
        spoken(sample_rate) {
    if (start.adaptive_bitrate) bitrate.emplace(now);
  }

  Duration heard_as(std::uint64_t samples) const noexcept {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(static_cast<double>(samples) / sample_rate));
  }
  // With pace "realtime": when the next audio may be taken.
  TimePoint may_go_on_at(Duration lead) const noexcept {
    return realtime && first_sent_at != TimePoint{} ? first_sent_at + heard_as(cutter.end_sample()) - lead : TimePoint{};
  }

  const std::uint16_t id;
  const std::string name;
  const bool timestamps, realtime;
  const std::uint32_t sample_rate;
  std::unique_ptr<synthesis::Synthesis> synthesis;
  std::uint32_t next_packet = 1;  // of its log
  bool ended = false;             // no more text comes
  bool listening = false;         // the log will tell of the next packet
  FrameCutter cutter;
  SpokenText spoken;
  std::optional<BitrateControl> bitrate;
  std::uint64_t sent_samples = 0;  // in frames that were sent
  TimePoint first_sent_at{};       // zero = nothing yet
};

}  // namespace tts::stream
