#include "dvae.h"

#include <stdexcept>

#include "safetensors.h"

namespace tts::model {

Dvae::Dvae(const engine::Manifest& manifest, bool verify_hash, ops::WeightFormat format)
    : architecture_(manifest.architecture), verify_hash_(verify_hash), format_(format) {
  const auto entry = manifest.files.find("dvae");
  if (entry == manifest.files.end()) throw std::runtime_error("the manifest names no file for 'dvae'");
  file_ = entry->second;
  read_file([&](TensorReader& reader) {
    const MelNetwork decoder(reader, architecture_.dvae_decoder, architecture_.n_mels, format_);
    contexts_.assign(decoder.contexts().begin(), decoder.contexts().end());
    max_width_ = decoder.max_width();
    max_inner_ = decoder.max_inner();
    quantizer_.emplace(reader, architecture_.quantizer);
    const ReferenceEncoder encoder(reader, architecture_, decoder.coef());
  });
}

template <class Load>
void Dvae::read_file(Load&& load) const {
  const SafetensorsFile file(file_.path);
  if (verify_hash_) file.require_sha256(file_.sha256);
  TensorReader reader(file);
  load(reader);
  reader.finish();
}

const MelNetwork& Dvae::decoder() const {
  const std::lock_guard lock(mutex_);
  if (!decoder_) {
    std::optional<MelNetwork> loaded;
    read_file([&](TensorReader& reader) {
      reader.ignore_rest();
      loaded.emplace(reader, architecture_.dvae_decoder, architecture_.n_mels, format_);
    });
    decoder_ = std::move(loaded);
  }
  return *decoder_;
}

const ReferenceEncoder& Dvae::encoder() const {
  const std::lock_guard lock(mutex_);
  if (!encoder_) {
    std::optional<ReferenceEncoder> loaded;
    read_file([&](TensorReader& reader) {
      reader.ignore_rest();
      loaded.emplace(reader, architecture_, reader.get("coef", {1, architecture_.n_mels, 1}));
    });
    encoder_ = std::move(loaded);
  }
  return *encoder_;
}

}  // namespace tts::model
