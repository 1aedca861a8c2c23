#include "voices.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "tts/base/sha256.h"
#include "tts/model/model.h"

#include "safetensors.h"
#include "speaker.h"

namespace tts::model {
namespace {

constexpr std::uint64_t kMaxStatisticsBytes = 1U << 20;

// The manifest's role table opened on demand; a file that cannot be used is reported once.
class SpeakerSources {
 public:
  SpeakerSources(const engine::Manifest& manifest, bool verify_hashes, std::vector<std::string>& problems)
      : hidden_size_(manifest.architecture.gpt.hidden_size) {
    const auto uses = [&](engine::SpeakerKind kind) {
      return std::any_of(manifest.voices.begin(), manifest.voices.end(), [&](const auto& voice) { return voice.speaker_kind == kind; });
    };
    try {
      if (uses(engine::SpeakerKind::kTensor)) open_tensors(file_of(manifest, "speakers"), verify_hashes);
    } catch (const std::runtime_error& error) {
      problems.emplace_back(error.what());
    }
    try {
      if (uses(engine::SpeakerKind::kSeed)) read_statistics(file_of(manifest, "speaker_stat"), verify_hashes);
    } catch (const std::runtime_error& error) {
      problems.emplace_back(error.what());
    }
  }

  // Null when the voice has no speaker vector, or when its source was already reported. Throws std::runtime_error.
  engine::SpeakerVector resolve(const engine::ManifestVoice& voice) const {
    switch (voice.speaker_kind) {
      case engine::SpeakerKind::kNone: return nullptr;
      case engine::SpeakerKind::kTensor: return tensors_ ? from_tensor(voice.speaker_value) : nullptr;
      case engine::SpeakerKind::kString: return from_string(voice.speaker_value);
      case engine::SpeakerKind::kSeed: return statistics_ ? from_seed(voice.speaker_value) : nullptr;
    }
    return nullptr;
  }

 private:
  static const engine::ManifestFile& file_of(const engine::Manifest& manifest, const std::string& role) {
    const auto found = manifest.files.find(role);
    if (found == manifest.files.end()) throw std::runtime_error("the manifest names no file for '" + role + "'");
    return found->second;
  }

  void open_tensors(const engine::ManifestFile& file, bool verify_hash) {
    auto tensors = std::make_unique<SafetensorsFile>(file.path);
    if (verify_hash) tensors->require_sha256(file.sha256);
    tensors_ = std::move(tensors);
  }

  void read_statistics(const engine::ManifestFile& file, bool verify_hash) {
    std::string text(static_cast<std::size_t>(std::min(file.bytes, kMaxStatisticsBytes)), '\0');
    std::ifstream stream(file.path, std::ios::binary);
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (verify_hash && sha256_hex(std::as_bytes(std::span(text))) != file.sha256) {
      throw std::runtime_error(file.path.string() + ": SHA-256 differs from the manifest");
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    auto statistics = parse_speaker_statistics(text, hidden_size_);
    if (!statistics) throw std::runtime_error(file.path.string() + ": " + statistics.error().message);
    statistics_ = std::move(statistics).value();
  }

  engine::SpeakerVector from_tensor(const std::string& name) const {
    TensorReader reader(*tensors_);
    std::vector<float> values = reader.get(name, {hidden_size_});
    reader.ignore_rest();
    reader.finish();
    return std::make_shared<const std::vector<float>>(std::move(values));
  }

  engine::SpeakerVector from_string(const std::string& text) const {
    auto speaker = parse_speaker_string(text, hidden_size_);
    if (!speaker) throw std::runtime_error(speaker.error().message);
    return std::move(speaker).value();
  }

  engine::SpeakerVector from_seed(const std::string& digits) const {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
    if (error != std::errc{} || end != digits.data() + digits.size()) throw std::runtime_error("the seed is not a number");
    return std::make_shared<const std::vector<float>>(random_speaker(*statistics_, seed));
  }

  std::uint32_t hidden_size_;
  std::unique_ptr<const SafetensorsFile> tensors_;
  std::optional<SpeakerStatistics> statistics_;
};

}  // namespace

std::vector<engine::Voice> load_voices(const engine::Manifest& manifest, bool verify_hashes) {
  std::vector<std::string> problems;
  const SpeakerSources sources(manifest, verify_hashes, problems);
  std::vector<engine::Voice> voices;
  for (const engine::ManifestVoice& entry : manifest.voices) {
    try {
      voices.push_back({entry.id, entry.title, entry.gender, entry.languages, sources.resolve(entry)});
    } catch (const std::runtime_error& error) {
      problems.push_back("voice '" + entry.id + "': " + error.what());
    }
  }
  if (!problems.empty()) {
    std::string text = "cannot resolve the voices:";
    for (const std::string& problem : problems) text.append("\n  ").append(problem);
    throw std::runtime_error(text);
  }
  return voices;
}

}  // namespace tts::model
