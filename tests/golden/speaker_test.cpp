// Speaker strings against those the reference wrote and read. Everything is exact.

#include "speaker.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tts/base/sha256.h"
#include "tts/model/model.h"

#include "base16384.h"
#include "golden_gpt.h"
#include "lzma2.h"
#include "support/golden_data.h"

namespace tts::model {
namespace {

using testing::code_frames;
using testing::GoldenFile;

using Bytes = std::vector<std::uint8_t>;

Bytes from_hex(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

TEST(GoldenSpeaker, Base16384BothWays) {
  const nlohmann::json pairs = golden_json("speaker.json").at("base16384");
  ASSERT_FALSE(pairs.empty());
  for (const auto& pair : pairs) {
    const Bytes bytes = from_hex(pair.at("hex"));
    const std::string text = pair.at("b16384");
    EXPECT_EQ(encode_base16384(bytes), text);
    const auto decoded = decode_base16384(text, bytes.size());
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(*decoded, bytes);
  }
}

TEST(GoldenSpeaker, RawLzma2InBothForms) {
  const nlohmann::json cases = golden_json("speaker.json").at("lzma2_raw");
  ASSERT_FALSE(cases.empty());
  for (const auto& entry : cases) {
    const std::size_t size = entry.at("len");
    for (const char* form : {"raw_lzma2_hex", "uncompressed_form_hex"}) {
      if (entry.at(form).is_null()) continue;  // the long ones are recorded in one form
      const auto decoded = decode_lzma2(from_hex(entry.at(form)), size);
      ASSERT_TRUE(decoded.ok()) << decoded.error().message;
      EXPECT_EQ(sha256_hex(std::as_bytes(std::span(*decoded))), entry.at("sha256"));
      if (form == std::string("uncompressed_form_hex")) {
        EXPECT_EQ(store_lzma2(*decoded), from_hex(entry.at(form)));
      }
    }
  }
}

TEST(GoldenSpeaker, SpeakerStringsGiveTheirVectors) {
  const GoldenFile golden("speaker");
  const nlohmann::json strings = golden_json("speaker.json");
  for (std::size_t i = 0; i < strings.at("spk_emb_strings").size(); ++i) {
    const auto speaker = parse_speaker_string(strings.at("spk_emb_strings")[i].get<std::string>(), 64);
    ASSERT_TRUE(speaker.ok()) << speaker.error().message;
    EXPECT_EQ(**speaker, golden.floats("spk_emb_" + std::to_string(i)));
  }
  const auto stored = parse_speaker_string(strings.at("spk_emb_uncompressed_lzma2").get<std::string>(), 64);
  ASSERT_TRUE(stored.ok()) << stored.error().message;
  EXPECT_EQ(**stored, golden.floats("spk_emb_0"));
  EXPECT_EQ(format_speaker_string(**stored), strings.at("spk_emb_uncompressed_lzma2"));
}

TEST(GoldenSpeaker, ReferenceStringsGiveTheirCodes) {
  const GoldenFile golden("speaker");
  const nlohmann::json strings = golden_json("speaker.json");
  const std::size_t frames = golden.shape("spk_smp_codes")[1];
  const std::vector<engine::CodeFrame> expected = code_frames(golden.ints("spk_smp_codes"), 0, frames);
  for (const char* form : {"spk_smp", "spk_smp_uncompressed_lzma2"}) {
    const auto codes = parse_reference_string(strings.at(form).get<std::string>(), frames);
    ASSERT_TRUE(codes.ok()) << codes.error().message;
    EXPECT_EQ(*codes, expected);
  }
  EXPECT_EQ(format_reference_string(expected), strings.at("spk_smp_uncompressed_lzma2"));
}

TEST(GoldenSpeaker, StatisticsAndARandomSpeaker) {
  const GoldenFile golden("speaker");
  const auto statistics = parse_speaker_statistics(golden_json("speaker.json").at("spk_stat").get<std::string>(), 64);
  ASSERT_TRUE(statistics.ok()) << statistics.error().message;
  EXPECT_EQ(statistics->deviation, golden.floats("std"));
  EXPECT_EQ(statistics->mean, golden.floats("mean"));
  EXPECT_EQ(speaker_from_noise(*statistics, golden.floats("random_noise_f16")), golden.floats("random_spk_f16"));
}

}  // namespace
}  // namespace tts::model
