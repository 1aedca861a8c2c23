#pragma once
// SHA-256 (FIPS 180-4) as lower-case hexadecimal.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace tts {

// Of data that comes in pieces.
class Sha256 {
 public:
  Sha256();  // throws std::runtime_error when OpenSSL lacks it
  void update(std::span<const std::byte> data);
  std::string hex();  // once, after the last update()

 private:
  std::shared_ptr<void> context_;
};

std::string sha256_hex(std::span<const std::byte> data);

// Blocks while reading. Throws std::runtime_error naming the file when it cannot be read.
std::string sha256_file_hex(const std::filesystem::path& path);

}  // namespace tts
