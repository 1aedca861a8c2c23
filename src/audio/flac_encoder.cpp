// FLAC through libFLAC's callbacks. Streaming: what libFLAC writes goes out at once and STREAMINFO says "unknown". Whole: everything
// is kept until the end, so that libFLAC can go back and put the length, frame sizes and MD5 into STREAMINFO.

#include <algorithm>
#include <array>
#include <cassert>
#include <string_view>

#include <FLAC/metadata.h>
#include <FLAC/stream_encoder.h>

#include "encoders.h"
#include "samples.h"

namespace tts::audio {
namespace {

constexpr unsigned kBitsPerSample = 16;
constexpr unsigned kCompressionLevel = 5;
constexpr std::size_t kChunk = 1024;

class FlacEncoder final : public Encoder {
 public:
  FlacEncoder(std::uint32_t sample_rate, std::uint64_t total_samples) : whole_(total_samples != 0), encoder_(FLAC__stream_encoder_new()) {
    if (!encoder_) return;
    auto* encoder = encoder_.get();
    FLAC__stream_encoder_set_channels(encoder, 1);
    FLAC__stream_encoder_set_bits_per_sample(encoder, kBitsPerSample);
    FLAC__stream_encoder_set_sample_rate(encoder, sample_rate);
    FLAC__stream_encoder_set_compression_level(encoder, kCompressionLevel);
    FLAC__stream_encoder_set_streamable_subset(encoder, true);
    if (!whole_) FLAC__stream_encoder_set_blocksize(encoder, sample_rate / 50);  // 20 ms, for low delay
    FLAC__stream_encoder_set_total_samples_estimate(encoder, total_samples);
    if (!add_comments()) return;
    ready_ = FLAC__stream_encoder_init_stream(encoder, &on_write, whole_ ? &on_seek : nullptr, whole_ ? &on_tell : nullptr, nullptr,
                                              this) == FLAC__STREAM_ENCODER_INIT_STATUS_OK;
  }

  bool ready() const noexcept { return ready_; }

  void start(Bytes& out) override { release(out); }

  void encode(std::span<const float> samples, Bytes& out) override {
    given_ += samples.size();
    std::array<FLAC__int32, kChunk> block;
    while (!samples.empty()) {
      const auto part = samples.first(std::min(samples.size(), kChunk));
      std::ranges::transform(part, block.begin(), to_s16);
      const FLAC__int32* channels[] = {block.data()};
      [[maybe_unused]] const bool ok = FLAC__stream_encoder_process(encoder_.get(), channels, static_cast<unsigned>(part.size())) != 0;
      assert(ok);
      samples = samples.subspan(part.size());
    }
    release(out);
  }

  void finish(Bytes& out) override {
    [[maybe_unused]] const bool ok = FLAC__stream_encoder_finish(encoder_.get()) != 0;
    assert(ok);
    finished_ = true;
    release(out);
  }

  std::uint64_t held() const noexcept override { return given_ - (whole_ && !finished_ ? 0 : written_); }

 private:
  bool add_comments() {
    comments_.reset(FLAC__metadata_object_new(FLAC__METADATA_TYPE_VORBIS_COMMENT));
    if (!comments_) return false;
    for (const std::string_view text : {kEncoderTag, kSyntheticTag}) {
      FLAC__StreamMetadata_VorbisComment_Entry entry;
      entry.length = static_cast<FLAC__uint32>(text.size());
      entry.entry = const_cast<FLAC__byte*>(reinterpret_cast<const FLAC__byte*>(text.data()));  // copied by libFLAC, not changed
      if (!FLAC__metadata_object_vorbiscomment_append_comment(comments_.get(), entry, true)) return false;
    }
    FLAC__StreamMetadata* blocks[] = {comments_.get()};
    return FLAC__stream_encoder_set_metadata(encoder_.get(), blocks, 1) != 0;
  }

  void release(Bytes& out) {
    if (whole_ && !finished_) return;
    out.insert(out.end(), file_.begin(), file_.end());
    file_.clear();
    at_ = 0;
  }

  static FlacEncoder& self(void* data) { return *static_cast<FlacEncoder*>(data); }

  static FLAC__StreamEncoderWriteStatus on_write(const FLAC__StreamEncoder*, const FLAC__byte data[], size_t size, std::uint32_t samples,
                                                 std::uint32_t, void* client) {
    self(client).written_ += samples;  // 0 for what is not audio
    Bytes& file = self(client).file_;
    std::size_t& at = self(client).at_;
    const std::size_t overwritten = std::min(size, file.size() - at);
    std::copy_n(data, overwritten, file.begin() + static_cast<std::ptrdiff_t>(at));
    file.insert(file.end(), data + overwritten, data + size);
    at += size;
    return FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
  }

  static FLAC__StreamEncoderSeekStatus on_seek(const FLAC__StreamEncoder*, FLAC__uint64 offset, void* client) {
    if (offset > self(client).file_.size()) return FLAC__STREAM_ENCODER_SEEK_STATUS_ERROR;
    self(client).at_ = offset;
    return FLAC__STREAM_ENCODER_SEEK_STATUS_OK;
  }

  static FLAC__StreamEncoderTellStatus on_tell(const FLAC__StreamEncoder*, FLAC__uint64* offset, void* client) {
    *offset = self(client).at_;
    return FLAC__STREAM_ENCODER_TELL_STATUS_OK;
  }

  struct Delete {
    void operator()(FLAC__StreamEncoder* encoder) const { FLAC__stream_encoder_delete(encoder); }
    void operator()(FLAC__StreamMetadata* metadata) const { FLAC__metadata_object_delete(metadata); }
  };

  const bool whole_;
  bool ready_ = false;
  bool finished_ = false;
  Bytes file_;          // not handed out yet
  std::size_t at_ = 0;  // libFLAC's position in file_
  std::uint64_t given_ = 0, written_ = 0;  // samples
  // Last, so that it goes first: deleting an unfinished encoder still calls back.
  std::unique_ptr<FLAC__StreamMetadata, Delete> comments_;
  std::unique_ptr<FLAC__StreamEncoder, Delete> encoder_;
};

}  // namespace

std::unique_ptr<Encoder> make_flac_encoder(std::uint32_t sample_rate, std::uint64_t total_samples) {
  auto encoder = std::make_unique<FlacEncoder>(sample_rate, total_samples);
  return encoder->ready() ? std::move(encoder) : nullptr;
}

}  // namespace tts::audio
