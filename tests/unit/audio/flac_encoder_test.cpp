#include <array>
#include <cstring>

#include <FLAC/stream_decoder.h>
#include <gtest/gtest.h>

#include "samples.h"
#include "signals.h"

namespace tts::audio {
namespace {

using test::encode;
using test::voice;

struct Decoded {
  const Bytes* file = nullptr;
  std::size_t at = 0;
  std::vector<std::int16_t> samples;
  FLAC__StreamMetadata_StreamInfo info{};
  std::vector<std::string> comments;
  int errors = 0;
  bool md5_ok = false;
};

FLAC__StreamDecoderReadStatus read(const FLAC__StreamDecoder*, FLAC__byte buffer[], std::size_t* bytes, void* client) {
  auto& decoded = *static_cast<Decoded*>(client);
  *bytes = std::min(*bytes, decoded.file->size() - decoded.at);
  if (*bytes == 0) return FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
  std::memcpy(buffer, decoded.file->data() + decoded.at, *bytes);
  decoded.at += *bytes;
  return FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
}

FLAC__StreamDecoderWriteStatus write(const FLAC__StreamDecoder*, const FLAC__Frame* frame, const FLAC__int32* const buffer[],
                                     void* client) {
  auto& samples = static_cast<Decoded*>(client)->samples;
  for (unsigned i = 0; i < frame->header.blocksize; ++i) samples.push_back(static_cast<std::int16_t>(buffer[0][i]));
  return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

void metadata(const FLAC__StreamDecoder*, const FLAC__StreamMetadata* block, void* client) {
  auto& decoded = *static_cast<Decoded*>(client);
  if (block->type == FLAC__METADATA_TYPE_STREAMINFO) decoded.info = block->data.stream_info;
  if (block->type != FLAC__METADATA_TYPE_VORBIS_COMMENT) return;
  for (unsigned i = 0; i < block->data.vorbis_comment.num_comments; ++i) {
    const auto& entry = block->data.vorbis_comment.comments[i];
    decoded.comments.emplace_back(reinterpret_cast<const char*>(entry.entry), entry.length);
  }
}

void failed(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus, void* client) { ++static_cast<Decoded*>(client)->errors; }

Decoded decode(const Bytes& file) {
  Decoded decoded;
  decoded.file = &file;
  FLAC__StreamDecoder* decoder = FLAC__stream_decoder_new();
  FLAC__stream_decoder_set_md5_checking(decoder, true);
  FLAC__stream_decoder_set_metadata_respond_all(decoder);
  FLAC__stream_decoder_init_stream(decoder, read, nullptr, nullptr, nullptr, nullptr, write, metadata, failed, &decoded);
  FLAC__stream_decoder_process_until_end_of_stream(decoder);
  decoded.md5_ok = FLAC__stream_decoder_finish(decoder) != 0;
  FLAC__stream_decoder_delete(decoder);
  return decoded;
}

std::vector<std::int16_t> quantised(const test::Samples& samples) {
  std::vector<std::int16_t> out;
  for (const float sample : samples) out.push_back(to_s16(sample));
  return out;
}

TEST(FlacEncoder, StreamDecodesToTheSame16BitSamples) {
  const auto samples = voice(50001, 24000);
  const Decoded decoded = decode(encode({{Container::kFlac, 24000, 0}, 0}, samples, 2400));
  EXPECT_EQ(decoded.errors, 0);
  EXPECT_EQ(decoded.samples, quantised(samples));
  EXPECT_EQ(decoded.info.total_samples, 0U);
  EXPECT_EQ(decoded.info.sample_rate, 24000U);
  EXPECT_EQ(decoded.info.channels, 1U);
  EXPECT_EQ(decoded.info.max_blocksize, 480U);
}

TEST(FlacEncoder, WholeFileCarriesLengthAndChecksum) {
  const auto samples = voice(50001, 24000);
  const Decoded decoded = decode(encode({{Container::kFlac, 24000, 0}, samples.size()}, samples, 2400));
  EXPECT_EQ(decoded.samples, quantised(samples));
  EXPECT_EQ(decoded.info.total_samples, samples.size());
  EXPECT_GT(decoded.info.max_framesize, 0U);
  const std::array<FLAC__byte, 16> none{};
  EXPECT_NE(std::memcmp(decoded.info.md5sum, none.data(), none.size()), 0);
  EXPECT_TRUE(decoded.md5_ok);
}

TEST(FlacEncoder, SaysThatTheSpeechIsSynthetic) {
  EXPECT_EQ(decode(encode({{Container::kFlac, 24000, 0}, 0}, {}, 1)).comments,
            (std::vector<std::string>{"ENCODER=chattts-server", "SYNTHETIC=true"}));
}

TEST(FlacEncoder, EmptyStreamIsAValidFile) {
  const Decoded decoded = decode(encode({{Container::kFlac, 48000, 0}, 0}, {}, 1));
  EXPECT_EQ(decoded.errors, 0);
  EXPECT_TRUE(decoded.samples.empty());
  EXPECT_EQ(decoded.info.sample_rate, 48000U);
}

TEST(FlacEncoder, HeldIsWhatTheFramesSoFarDoNotPlay) {
  auto encoder = make_encoder({{Container::kFlac, 24000, 0}, 0});
  ASSERT_TRUE(encoder.ok());
  Bytes out;
  (*encoder)->start(out);
  std::size_t given = 0;
  for (const std::size_t count : {100U, 900U, 5000U, 1U}) {
    (*encoder)->encode(voice(count, 24000), out);
    given += count;
    EXPECT_EQ(given - (*encoder)->held(), decode(out).samples.size()) << given;
  }
  (*encoder)->finish(out);
  EXPECT_EQ((*encoder)->held(), 0U);
}

TEST(FlacEncoder, FirstAudioComesAfterTwoBlocks) {
  auto encoder = make_encoder({{Container::kFlac, 24000, 0}, 0});
  ASSERT_TRUE(encoder.ok());
  Bytes out;
  (*encoder)->start(out);
  const std::size_t header = out.size();
  EXPECT_GT(header, 42U);
  (*encoder)->encode(voice(960, 24000), out);
  EXPECT_GT(out.size(), header);
}

}  // namespace
}  // namespace tts::audio
