#include "model_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tts/base/sha256.h"

namespace tts::text {

std::vector<std::byte> read_model_file(const engine::Manifest& manifest, const std::string& role) {
  const auto found = manifest.files.find(role);
  if (found == manifest.files.end()) throw std::runtime_error("model " + manifest.name + ": the manifest names no file for " + role);
  const engine::ManifestFile& entry = found->second;
  std::ifstream file(entry.path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + entry.path.string() + ": " + std::strerror(errno));
  std::vector<std::byte> content(entry.bytes);
  file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()));
  const bool complete = static_cast<std::size_t>(file.gcount()) == content.size() && file.peek() == std::ifstream::traits_type::eof();
  if (!complete || sha256_hex(content) != entry.sha256) {
    throw std::runtime_error(entry.path.string() + " differs from the manifest of " + manifest.name + "; install the model again");
  }
  return content;
}

}  // namespace tts::text
