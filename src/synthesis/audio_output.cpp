#include "audio_output.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tts::synthesis {
namespace {

constexpr std::chrono::milliseconds kLongestAsMade{1000};

Result<std::unique_ptr<audio::PcmPipeline>> pipeline_for(const AudioOutputOptions& options, double speed) {
  return audio::make_pcm_pipeline({.source_rate = options.source_rate,
                                   .output_rate = options.format.sample_rate,
                                   .speed = speed,
                                   .crossfade_ms = options.crossfade_ms});
}

Result<std::unique_ptr<audio::Encoder>> encoder_for(const AudioOutputOptions& options, std::uint64_t total_samples) {
  return audio::make_encoder({.format = options.format,
                              .total_samples = total_samples,
                              .opus_complexity = options.opus_complexity,
                              .adaptive_bitrate = options.adaptive_bitrate});
}

}  // namespace

Result<std::unique_ptr<AudioOutput>> AudioOutput::make(const AudioOutputOptions& options, resume::StreamLog& log) {
  auto pipeline = pipeline_for(options, options.speed);
  if (!pipeline.ok()) return std::move(pipeline).error();
  std::unique_ptr<AudioOutput> output(new AudioOutput(options, std::move(pipeline).value(), log));
  // Made for `whole` too, where another takes its place at the end: a wrong format must show before the work is done.
  auto encoder = encoder_for(options, 0);
  if (!encoder.ok()) return std::move(encoder).error();
  if (!options.whole) {
    output->encoder_ = std::move(encoder).value();
    output->encoder_->start(output->bytes_);
  }
  return output;
}

AudioOutput::AudioOutput(const AudioOutputOptions& options, std::unique_ptr<audio::PcmPipeline> pipeline, resume::StreamLog& log)
    : options_(options),
      max_samples_(std::uint64_t{options.max_seconds} * options.format.sample_rate),
      pipeline_(std::move(pipeline)),
      speed_(options.speed),
      log_(log),
      packetizer_(audio::packet_samples(options.format.sample_rate, options.packet.count() > 0 ? options.packet : kLongestAsMade)),
      as_made_(options.packet.count() == 0) {}

Status AudioOutput::push(std::span<const float> samples, bool more_follows) {
  begin_call();
  settled_ = settled_ && samples.empty();
  pipeline_->push(samples, scratch_, more_follows);
  return accept();
}

Status AudioOutput::end_utterance() {
  begin_call();
  pipeline_->end_utterance(scratch_);
  return accept();
}

Status AudioOutput::finish() {
  begin_call();
  pipeline_->finish(scratch_);
  if (auto status = accept(); !status.ok()) return status;
  if (options_.whole) return finish_whole();
  packetizer_.finish([this](std::span<const float> rest) {
    encoder_->encode(rest, bytes_);
    encoded_ += rest.size();
  });
  encoder_->finish(bytes_);
  append();
  append_marks();
  return Ok{};
}

Status AudioOutput::settle(std::vector<resume::Mark> behind) {
  begin_call();
  if (!settled_) {
    if (auto status = renew_pipeline(speed_); !status.ok()) return status;
    if (encoder_) {
      packetizer_.finish([this](std::span<const float> rest) { encode_packet(rest); });
      const std::uint64_t silence = encoder_->settle(bytes_);
      samples_ += silence;
      encoded_ += silence;
      append();
    }
    settled_ = true;
  }
  for (resume::Mark& mark : behind) {
    mark.first_sample = samples_;
    marks_.push_back(mark);
  }
  append_marks();
  return Ok{};
}

Status AudioOutput::set_speed(double speed) {
  begin_call();
  if (speed == speed_) return Ok{};
  return renew_pipeline(speed);
}

void AudioOutput::set_bitrate(std::uint32_t bits_per_second) {
  bitrate_ = bits_per_second;
  if (encoder_) encoder_->set_bitrate(bits_per_second);
}

// A pipeline that was finished takes nothing more.
Status AudioOutput::renew_pipeline(double speed) {
  auto renewed = pipeline_for(options_, speed);
  if (!renewed.ok()) return std::move(renewed).error();
  pipeline_->finish(scratch_);
  pipeline_ = std::move(renewed).value();
  speed_ = speed;
  return accept();
}

void AudioOutput::begin_call() {
  scratch_.clear();
  log_is_full_ = false;
}

Status AudioOutput::accept() {
  samples_ += scratch_.size();
  if (samples_ > max_samples_) {
    return Error{ErrorCode::kTooLarge, "the audio exceeds the limit of " + std::to_string(options_.max_seconds) + " s", "text", {}};
  }
  if (options_.whole) {
    whole_.insert(whole_.end(), scratch_.begin(), scratch_.end());
  } else {
    const auto encode = [this](std::span<const float> packet) { encode_packet(packet); };
    packetizer_.push(scratch_, encode);
    if (as_made_) packetizer_.finish(encode);
  }
  return Ok{};
}

void AudioOutput::encode_packet(std::span<const float> samples) {
  encoder_->encode(samples, bytes_);
  encoded_ += samples.size();
  append();
}

// An encoder that keeps everything back for now makes no packet; the next one then starts where this one would have.
void AudioOutput::append() {
  if (bytes_.empty()) return;
  begun_ = true;
  log_is_full_ = !log_.append(first_of_bytes_, std::exchange(bytes_, {}), std::exchange(marks_, {}));
  first_of_bytes_ = audible();
}

void AudioOutput::append_marks() {
  if (!marks_.empty()) log_is_full_ = !log_.append(first_of_bytes_, {}, std::exchange(marks_, {}));
}

std::uint64_t AudioOutput::audible() const noexcept { return encoder_ ? encoded_ - std::min(encoded_, encoder_->held()) : 0; }

Status AudioOutput::finish_whole() {
  auto encoder = encoder_for(options_, whole_.size());
  if (!encoder.ok()) return std::move(encoder).error();
  encoder_ = std::move(encoder).value();
  if (bitrate_ > 0) encoder_->set_bitrate(bitrate_);
  encoder_->start(bytes_);
  encoder_->encode(whole_, bytes_);
  whole_ = {};
  encoder_->finish(bytes_);
  append();
  return Ok{};
}

}  // namespace tts::synthesis
