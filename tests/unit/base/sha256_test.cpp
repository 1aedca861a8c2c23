#include "tts/base/sha256.h"

#include <fstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace tts {
namespace {

std::string hash(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

// Vectors of FIPS 180-4 and NIST's CAVP.
TEST(Sha256, KnownVectors) {
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, FilesAreHashedWhole) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "sha256_test";
  const std::string content((1 << 20) + 17, 'x');  // more than one read
  std::ofstream(path, std::ios::binary) << content;
  EXPECT_EQ(sha256_file_hex(path), hash(content));
  std::ofstream(path, std::ios::binary | std::ios::trunc);
  EXPECT_EQ(sha256_file_hex(path), hash(""));
  std::filesystem::remove(path);
}

TEST(Sha256, NamesTheFileThatCannotBeRead) {
  try {
    static_cast<void>(sha256_file_hex("/no/such/file"));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/file"), std::string::npos);
  }
}

}  // namespace
}  // namespace tts
