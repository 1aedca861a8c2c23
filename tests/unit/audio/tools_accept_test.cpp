// Files as ffprobe and opusinfo see them. Skipped where those programs are not installed: the other tests decode with the libraries.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "signals.h"

namespace tts::audio {
namespace {

struct Output {
  int status;
  std::string text;  // stdout and stderr
};

Output shell(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), got);
  return {pclose(pipe), text};
}

bool installed(const std::string& program) { return shell("command -v " + program).status == 0; }

class ToolsAccept : public testing::TestWithParam<std::tuple<Container, bool, std::size_t>> {
 protected:
  void SetUp() override {
    auto pattern = (std::filesystem::temp_directory_path() / "tts_audio_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file() const {
    const auto& [container, whole, count] = GetParam();
    const Bytes bytes = test::encode({{container, 24000, 0}, whole ? count : 0}, test::voice(count, 24000), 2400);
    const auto path = folder_ / ("test." + std::string(to_string(container)));
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path.string();
  }

  std::filesystem::path folder_;
};

TEST_P(ToolsAccept, FfprobeHasNothingToSayAndCountsTheSamples) {
  if (!installed("ffprobe") || !installed("ffmpeg")) GTEST_SKIP() << "ffmpeg is not installed";
  const std::string path = file();
  const Output probe = shell("ffprobe -v warning " + path);
  EXPECT_EQ(probe.status, 0);
  const auto& [container, whole, count] = GetParam();
  // A streamed WAV or MP3 cannot name its length, and ffmpeg says that it has to guess.
  const bool names_length = whole || container == Container::kFlac || container == Container::kOggOpus;
  if (names_length) {
    EXPECT_EQ(probe.text, "");
  }
  const std::string pcm = (folder_ / "out.pcm").string();
  const Output decode = shell("ffmpeg -v warning -nostdin -guess_layout_max 0 -i " + path + " -f s16le -ac 1 -ar 24000 " + pcm);
  EXPECT_EQ(decode.status, 0);
  if (names_length) {
    EXPECT_EQ(decode.text, "");
  }
  const std::size_t samples = std::filesystem::file_size(pcm) / 2;
  if (container == Container::kMp3 && !whole) {
    EXPECT_NEAR(static_cast<double>(samples), static_cast<double>(count), 3 * 576);
  } else {
    EXPECT_NEAR(static_cast<double>(samples), static_cast<double>(count), container == Container::kOggOpus ? 1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ToolsAccept,
                         testing::Combine(testing::Values(Container::kWav, Container::kFlac, Container::kMp3, Container::kOggOpus),
                                          testing::Bool(), testing::Values(2400, 50001)));

class OpusInfoAccepts : public ToolsAccept {};

TEST_P(OpusInfoAccepts, WithoutAWarning) {
  if (!installed("opusinfo")) GTEST_SKIP() << "opusinfo is not installed (opus-tools)";
  const Output info = shell("opusinfo " + file());
  EXPECT_EQ(info.status, 0);
  EXPECT_EQ(info.text.find("WARNING"), std::string::npos) << info.text;
  EXPECT_NE(info.text.find("Pre-skip: 120"), std::string::npos) << info.text;
  EXPECT_NE(info.text.find("SYNTHETIC=true"), std::string::npos) << info.text;
}

INSTANTIATE_TEST_SUITE_P(Files, OpusInfoAccepts,
                         testing::Combine(testing::Values(Container::kOggOpus), testing::Values(false),
                                          testing::Values(0, 1, 2400, 50001)));

}  // namespace
}  // namespace tts::audio
