#include "model_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace tts::text {
namespace {

class ModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) / (std::string("model_file_") + test->name());
    std::ofstream(path_, std::ios::binary) << "abc";
    manifest_.name = "m";
    manifest_.files["part"] = {path_, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 3};
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::filesystem::path path_;
  engine::Manifest manifest_;
};

TEST_F(ModelFile, ReturnsTheContent) { EXPECT_EQ(read_model_file(manifest_, "part").size(), 3U); }

TEST_F(ModelFile, RefusesUnknownRolesAndMissingFiles) {
  EXPECT_THROW(read_model_file(manifest_, "other"), std::runtime_error);
  std::filesystem::remove(path_);
  EXPECT_THROW(read_model_file(manifest_, "part"), std::runtime_error);
}

TEST_F(ModelFile, RefusesContentThatDiffersFromTheManifest) {
  std::ofstream(path_, std::ios::binary) << "abd";
  EXPECT_THROW(read_model_file(manifest_, "part"), std::runtime_error);
  std::ofstream(path_, std::ios::binary) << "abcd";
  EXPECT_THROW(read_model_file(manifest_, "part"), std::runtime_error);
  std::ofstream(path_, std::ios::binary) << "ab";
  EXPECT_THROW(read_model_file(manifest_, "part"), std::runtime_error);
}

}  // namespace
}  // namespace tts::text
