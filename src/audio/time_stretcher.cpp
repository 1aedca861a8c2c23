#include "time_stretcher.h"

#include <algorithm>
#include <cassert>

#include <sonic.h>

#include "samples.h"

namespace tts::audio {
namespace {

constexpr std::uint32_t kBlocksPerSecond = 100;

}  // namespace

void TimeStretcher::Delete::operator()(sonicStreamStruct* stream) const { sonicDestroyStream(stream); }

std::unique_ptr<TimeStretcher> TimeStretcher::create(std::uint32_t sample_rate, double speed) {
  sonicStream stream = sonicCreateStream(static_cast<int>(sample_rate), 1);
  if (!stream) return nullptr;
  sonicSetSpeed(stream, static_cast<float>(speed));
  return std::unique_ptr<TimeStretcher>(new TimeStretcher(sample_rate, stream));
}

TimeStretcher::TimeStretcher(std::uint32_t sample_rate, sonicStreamStruct* stream)
    : blocks_(sample_rate / kBlocksPerSecond), scratch_(sample_rate / kBlocksPerSecond), stream_(stream) {}

void TimeStretcher::push(std::span<const float> samples, std::vector<float>& out) {
  blocks_.push(samples, [&](std::span<const float> block) { write(block); });
  read(out);
}

void TimeStretcher::finish(std::vector<float>& out) {
  blocks_.finish([&](std::span<const float> block) { write(block); });
  [[maybe_unused]] const int ok = sonicFlushStream(stream_.get());
  assert(ok);
  read(out);
}

void TimeStretcher::write(std::span<const float> block) {
  std::ranges::transform(block, scratch_.begin(), to_s16);
  [[maybe_unused]] const int ok = sonicWriteShortToStream(stream_.get(), scratch_.data(), static_cast<int>(block.size()));
  assert(ok);
}

void TimeStretcher::read(std::vector<float>& out) {
  const int available = sonicSamplesAvailable(stream_.get());
  if (available <= 0) return;
  const std::size_t begin = out.size();
  out.resize(begin + static_cast<std::size_t>(available));
  const int got = sonicReadFloatFromStream(stream_.get(), out.data() + begin, available);
  out.resize(begin + static_cast<std::size_t>(got));
}

}  // namespace tts::audio
