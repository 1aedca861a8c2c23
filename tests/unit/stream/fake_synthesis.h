#pragma once
// Syntheses whose audio the test makes: what was asked of each is written down.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tts/synthesis/synthesis.h"

namespace tts::stream {

// The test's end; outlives the session's.
struct Speaker {
  explicit Speaker(synthesis::SynthesisRequest asked) : request(std::move(asked)), log(request.log.value_or(resume::StreamLogOptions{})) {}

  // So many samples of 16-bit PCM, each sample telling its place.
  void speak(std::size_t samples, std::vector<resume::Mark> marks = {}) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i < samples; ++i) {
      const auto value = static_cast<std::uint16_t>(spoken + i);
      bytes.push_back(static_cast<std::uint8_t>(value & 255U));
      bytes.push_back(static_cast<std::uint8_t>(value >> 8U));
    }
    below_high_water = log.append(spoken, std::move(bytes), std::move(marks));
    spoken += samples;
  }

  const synthesis::SynthesisRequest request;
  resume::StreamLog log;
  std::uint64_t spoken = 0;
  bool below_high_water = true;
  std::string asked;  // "Hello |flush|end": texts and what else came, in order
  std::vector<synthesis::SpeechChange> changes;
  std::optional<TimePoint> runs_dry_at;
  std::vector<std::uint32_t> bitrates;
  std::optional<Error> refusal;  // of the next append_text and change
  bool let_go = false;
};

class FakeSynthesis final : public synthesis::Synthesis {
 public:
  explicit FakeSynthesis(std::shared_ptr<Speaker> speaker) : speaker_(std::move(speaker)) {}
  ~FakeSynthesis() override {
    speaker_->log.close();
    speaker_->let_go = true;
  }
  resume::StreamLog& log() noexcept override { return speaker_->log; }
  std::uint64_t seed() const noexcept override { return 4711; }
  synthesis::SynthesisReport report() const override { return {}; }
  Status append_text(std::string_view text) override {
    if (speaker_->refusal) return *speaker_->refusal;
    speaker_->asked += text;
    characters_ += text.size();
    return Ok{};
  }
  void flush_text() override { speaker_->asked += "|flush"; }
  void end_text() override { speaker_->asked += "|end"; }
  Status change(synthesis::SpeechChange change) override {
    if (speaker_->refusal) return *speaker_->refusal;
    speaker_->changes.push_back(std::move(change));
    return Ok{};
  }
  void report_runs_dry_at(TimePoint when) override { speaker_->runs_dry_at = when; }
  void set_bitrate(std::uint32_t rate) override { speaker_->bitrates.push_back(rate); }
  std::uint32_t pre_skip() const noexcept override { return 0; }
  std::uint64_t characters() const override { return characters_; }

 private:
  const std::shared_ptr<Speaker> speaker_;
  std::uint64_t characters_ = 0;
};

}  // namespace tts::stream
