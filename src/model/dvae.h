#pragma once
// The networks of the dvae file, which few requests need: codes to log-mel, and reference recordings to codes. Their weights are read
// when the first such request comes, 60 MB at the official size that other processes do without.

#include <cstddef>
#include <mutex>
#include <optional>
#include <span>

#include "tts/engine/manifest.h"

#include "gfsq.h"
#include "mel_network.h"
#include "ops/weight_format.h"
#include "reference_encoder.h"

namespace tts::model {

// Thread-safe.
class Dvae {
 public:
  // Blocks. Reads the whole file once, so that what is wrong with it is known, and lets the weights of the networks go again.
  // Throws std::runtime_error listing everything wrong with the file (its hash first when asked for). `format` is the decoder's; the
  // encoder is always float32.
  Dvae(const engine::Manifest& manifest, bool verify_hash, ops::WeightFormat format);

  const Gfsq& quantizer() const noexcept { return *quantizer_; }

  // The first call blocks for the load, a tenth of a second at the official size, and throws std::runtime_error when the file is not what
  // it was.
  const MelNetwork& decoder() const;
  const ReferenceEncoder& encoder() const;

  // Of the decoder, loaded or not.
  std::span<const ContextSpec> contexts() const noexcept { return contexts_; }
  std::size_t inputs() const noexcept { return architecture_.dvae_decoder.idim; }
  std::size_t max_width() const noexcept { return max_width_; }
  std::size_t max_inner() const noexcept { return max_inner_; }

 private:
  template <class Load>
  void read_file(Load&& load) const;

  engine::Architecture architecture_;
  engine::ManifestFile file_;
  bool verify_hash_;
  ops::WeightFormat format_;
  std::optional<Gfsq> quantizer_;
  ContextSpecs contexts_;
  std::size_t max_width_ = 0, max_inner_ = 0;
  mutable std::mutex mutex_;
  mutable std::optional<MelNetwork> decoder_;
  mutable std::optional<ReferenceEncoder> encoder_;
};

}  // namespace tts::model
