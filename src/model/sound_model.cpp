#include "sound_model.h"

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "safetensors.h"

namespace tts::model {
namespace {

// Runs `load` on one file and notes what is wrong with it, so that all files can be reported together.
template <class Load>
void load_file(const engine::Manifest& manifest, const std::string& role, bool verify_hash, std::vector<std::string>& problems,
               Load&& load) {
  const auto entry = manifest.files.find(role);
  if (entry == manifest.files.end()) {
    problems.push_back("the manifest names no file for '" + role + "'");
    return;
  }
  try {
    const SafetensorsFile file(entry->second.path);
    if (verify_hash) file.require_sha256(entry->second.sha256);
    TensorReader reader(file);
    load(reader);
    reader.finish();
  } catch (const std::runtime_error& error) {
    problems.emplace_back(error.what());
  }
}

}  // namespace

SoundModel load_sound_model(const engine::Manifest& manifest, bool verify_hashes, ops::WeightFormat format) {
  const engine::Architecture& sizes = manifest.architecture;
  std::vector<std::string> problems;
  std::optional<MelNetwork> decoder;
  std::unique_ptr<const Dvae> dvae;
  std::optional<Vocos> vocos;
  load_file(manifest, "decoder", verify_hashes, problems,
            [&](TensorReader& reader) { decoder.emplace(reader, sizes.decoder, sizes.n_mels, format); });
  try {
    dvae = std::make_unique<const Dvae>(manifest, verify_hashes, format);
  } catch (const std::runtime_error& error) {
    problems.emplace_back(error.what());
  }
  load_file(manifest, "vocos", verify_hashes, problems, [&](TensorReader& reader) { vocos.emplace(reader, sizes, format); });
  if (!problems.empty()) {
    std::string text = "cannot load the sound model:";
    for (const std::string& problem : problems) text.append("\n  ").append(problem);
    throw std::runtime_error(text);
  }
  return {std::move(*decoder), std::move(dvae), std::move(*vocos), format};
}

}  // namespace tts::model
