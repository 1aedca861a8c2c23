#include "tts/audio/pcm_pipeline.h"

#include <optional>
#include <string>

#include "resampler.h"
#include "time_stretcher.h"
#include "utterance_joiner.h"

namespace tts::audio {
namespace {

constexpr std::uint32_t kMinRate = 8000;
constexpr std::uint32_t kMaxRate = 48000;
constexpr double kMinSpeed = 0.5;
constexpr double kMaxSpeed = 2.0;
constexpr std::uint32_t kMaxCrossfadeMs = 500;

// join → stretch → resample, where a stage that has nothing to do is absent.
class Pipeline final : public PcmPipeline {
 public:
  Pipeline(std::size_t fade, std::unique_ptr<TimeStretcher> stretcher, std::unique_ptr<Resampler> resampler)
      : joiner_(fade), stretcher_(std::move(stretcher)), resampler_(std::move(resampler)) {}

  void push(std::span<const float> samples, std::vector<float>& out, bool more_follows) override {
    if (!stretcher_ && !resampler_) return joiner_.push(samples, out, more_follows);
    joined_.clear();
    joiner_.push(samples, joined_, more_follows);
    convert(out);
  }

  void end_utterance(std::vector<float>&) override { joiner_.end_utterance(); }

  void finish(std::vector<float>& out) override {
    if (!stretcher_ && !resampler_) return joiner_.finish(out);
    joined_.clear();
    joiner_.finish(joined_);
    convert(out);
    if (stretcher_) {
      stretched_.clear();
      std::vector<float>& target = resampler_ ? stretched_ : out;
      stretcher_->finish(target);
      if (resampler_) resampler_->push(stretched_, out);
    }
    if (resampler_) resampler_->finish(out);
  }

 private:
  // joined_ through the later stages.
  void convert(std::vector<float>& out) {
    if (!stretcher_) return resampler_->push(joined_, out);
    if (!resampler_) return stretcher_->push(joined_, out);
    stretched_.clear();
    stretcher_->push(joined_, stretched_);
    resampler_->push(stretched_, out);
  }

  UtteranceJoiner joiner_;
  std::unique_ptr<TimeStretcher> stretcher_;
  std::unique_ptr<Resampler> resampler_;
  std::vector<float> joined_, stretched_;  // kept for their capacity
};

std::optional<Error> check(const PcmPipelineOptions& options) {
  const auto wrong = [](std::string param, std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message), std::move(param)};
  };
  const auto rate_ok = [](std::uint32_t rate) { return rate >= kMinRate && rate <= kMaxRate; };
  if (!rate_ok(options.source_rate) || !rate_ok(options.output_rate)) return wrong("sample_rate", "sample rates go from 8000 to 48000 Hz");
  // Written so that NaN fails.
  if (!(options.speed >= kMinSpeed && options.speed <= kMaxSpeed)) return wrong("speed", "speed goes from 0.5 to 2.0");
  if (options.crossfade_ms > kMaxCrossfadeMs)
    return wrong("crossfade_ms", "the cross-fade lasts at most " + std::to_string(kMaxCrossfadeMs) + " ms");
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<PcmPipeline>> make_pcm_pipeline(const PcmPipelineOptions& options) {
  if (auto error = check(options)) return *std::move(error);
  std::unique_ptr<TimeStretcher> stretcher;
  std::unique_ptr<Resampler> resampler;
  if (options.speed != 1.0 && !(stretcher = TimeStretcher::create(options.source_rate, options.speed))) {
    return Error{ErrorCode::kInternal, "the time stretcher could not start", ""};
  }
  if (options.output_rate != options.source_rate && !(resampler = Resampler::create(options.source_rate, options.output_rate))) {
    return Error{ErrorCode::kInternal, "the resampler could not start", ""};
  }
  const std::size_t fade = static_cast<std::size_t>(std::uint64_t{options.source_rate} * options.crossfade_ms / 1000);
  return std::unique_ptr<PcmPipeline>(std::make_unique<Pipeline>(fade, std::move(stretcher), std::move(resampler)));
}

}  // namespace tts::audio
