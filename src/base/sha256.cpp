#include "tts/base/sha256.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

#include <openssl/evp.h>

namespace tts {
namespace {

EVP_MD_CTX* context_of(const std::shared_ptr<void>& context) { return static_cast<EVP_MD_CTX*>(context.get()); }

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), [](void* context) { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context)); }) {
  if (!context_ || EVP_DigestInit_ex(context_of(context_), EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256 is not available in this OpenSSL");
}

void Sha256::update(std::span<const std::byte> data) { EVP_DigestUpdate(context_of(context_), data.data(), data.size()); }

std::string Sha256::hex() {
  std::array<unsigned char, 32> bytes{};
  EVP_DigestFinal_ex(context_of(context_), bytes.data(), nullptr);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

std::string sha256_hex(std::span<const std::byte> data) {
  Sha256 digest;
  digest.update(data);
  return digest.hex();
}

std::string sha256_file_hex(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string() + ": " + std::strerror(errno));
  Sha256 digest;
  std::vector<char> buffer(1 << 20);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    digest.update(std::as_bytes(std::span(buffer).first(static_cast<std::size_t>(file.gcount()))));
  }
  if (file.bad()) throw std::runtime_error("cannot read " + path.string() + ": " + std::strerror(errno));
  return digest.hex();
}

}  // namespace tts
