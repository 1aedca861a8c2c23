// MPEG layer III through LAME. Streaming: constant bit rate without reservoir, so that each frame can be played as it comes.
// Whole: everything is kept until the end, because the gapless tag that names delay and padding stands in the first frame.

#include <algorithm>
#include <array>
#include <cassert>
#include <string>

#include <lame/lame.h>

#include "encoders.h"
#include "samples.h"

namespace tts::audio {
namespace {

constexpr std::size_t kChunk = 1152;                      // samples of the longest MPEG frame
constexpr std::size_t kOutBytes = kChunk * 5 / 4 + 7200;  // LAME's documented worst case
constexpr std::size_t kMaxTagFrame = 2880;                // longest possible frame; LAME asks for this much

struct DeleteLame {
  void operator()(lame_t lame) const { lame_close(lame); }
};

class Mp3Encoder final : public Encoder {
 public:
  Mp3Encoder(std::uint32_t sample_rate, std::uint32_t bitrate, bool whole) : whole_(whole), lame_(lame_init()) {
    lame_t lame = lame_.get();
    if (!lame) return;
    lame_set_errorf(lame, nullptr);
    lame_set_msgf(lame, nullptr);
    lame_set_debugf(lame, nullptr);
    lame_set_in_samplerate(lame, static_cast<int>(sample_rate));
    lame_set_out_samplerate(lame, static_cast<int>(sample_rate));
    lame_set_num_channels(lame, 1);
    lame_set_mode(lame, MONO);
    lame_set_brate(lame, static_cast<int>(bitrate / 1000));
    lame_set_bWriteVbrTag(lame, whole);
    lame_set_disable_reservoir(lame, !whole);
    id3tag_init(lame);
    id3tag_v2_only(lame);
    id3tag_set_fieldvalue(lame, (std::string("TXXX=") + kSyntheticTag).c_str());
    ready_ = lame_init_params(lame) >= 0;
  }

  bool ready() const noexcept { return ready_; }

  void start(Bytes&) override {}

  void encode(std::span<const float> samples, Bytes& out) override {
    given_ += samples.size();
    Bytes& target = whole_ ? file_ : out;
    std::array<float, kChunk> block;
    while (!samples.empty()) {
      const auto part = samples.first(std::min(samples.size(), kChunk));
      std::ranges::transform(part, block.begin(), clean);
      append(
          lame_encode_buffer_ieee_float(lame_.get(), block.data(), block.data(), static_cast<int>(part.size()), buffer_.data(), kOutBytes),
          target);
      samples = samples.subspan(part.size());
    }
  }

  void finish(Bytes& out) override {
    finished_ = true;
    append(lame_encode_flush(lame_.get(), buffer_.data(), kOutBytes), whole_ ? file_ : out);
    if (!whole_) return;
    std::array<std::uint8_t, kMaxTagFrame> tag;
    const std::size_t tag_bytes = lame_get_lametag_frame(lame_.get(), tag.data(), tag.size());
    // LAME left room for it behind the ID3v2 tag.
    const std::size_t at = lame_get_id3v2_tag(lame_.get(), nullptr, 0);
    assert(tag_bytes <= tag.size() && at + tag_bytes <= file_.size());
    std::copy_n(tag.begin(), tag_bytes, file_.begin() + static_cast<std::ptrdiff_t>(at));
    out.insert(out.end(), file_.begin(), file_.end());
  }

  // A stream's player hears the encoder's delay as well: it knows of none.
  std::uint64_t held() const noexcept override {
    if (finished_) return 0;
    if (whole_) return given_;
    const auto frames = static_cast<std::uint64_t>(lame_get_frameNum(lame_.get()));
    return given_ - std::min(given_, frames * static_cast<std::uint64_t>(lame_get_framesize(lame_.get())));
  }

 private:
  void append(int bytes, Bytes& out) {
    assert(bytes >= 0);
    out.insert(out.end(), buffer_.data(), buffer_.data() + std::max(bytes, 0));
  }

  const bool whole_;
  bool ready_ = false;
  bool finished_ = false;
  std::uint64_t given_ = 0;  // samples
  Bytes file_;
  std::array<std::uint8_t, kOutBytes> buffer_;
  std::unique_ptr<lame_global_flags, DeleteLame> lame_;
};

}  // namespace

std::unique_ptr<Encoder> make_mp3_encoder(std::uint32_t sample_rate, std::uint32_t bitrate, bool whole) {
  auto encoder = std::make_unique<Mp3Encoder>(sample_rate, bitrate, whole);
  return encoder->ready() ? std::move(encoder) : nullptr;
}

}  // namespace tts::audio
