#pragma once
// SHA-256 (FIPS 180-4) as lower-case hexadecimal.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace tts {

std::string sha256_hex(std::span<const std::byte> data);

// Blocks while reading. Throws std::runtime_error naming the file when it cannot be read.
std::string sha256_file_hex(const std::filesystem::path& path);

}  // namespace tts
