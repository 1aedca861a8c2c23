#include "tts/engine/manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "json_fields.h"

namespace tts::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kFormat = 1;
constexpr std::uintmax_t kMaxManifestBytes = 1U << 20;
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxText = 4096, kMaxRoles = 64, kMaxVoices = 1024, kMaxLanguages = 32;
constexpr std::size_t kMaxSpeakerValue = 64 * 1024;
constexpr std::uint32_t kMaxWidth = 16384, kMaxLayers = 256, kMaxVocabulary = 1U << 20, kMaxPositions = 1U << 20;

// Roles without which no model runs; the text front end adds its own.
constexpr std::array<std::string_view, 5> kModelRoles{"gpt", "embed", "decoder", "dvae", "vocos"};

// An identifier that is safe in file names, metrics and logs.
bool is_identifier(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

std::string identifier(const JsonFields& fields, std::string_view name) {
  std::string text = fields.text(name, 64);
  if (!text.empty() && !is_identifier(text)) fields.note(name, "may only hold letters, digits, '_', '-' and '.'");
  return text;
}

GptSizes read_gpt(const JsonFields& fields) {
  GptSizes sizes;
  sizes.hidden_size = fields.size("hidden_size", 2, kMaxWidth);
  sizes.intermediate_size = fields.size("intermediate_size", 1, 4 * kMaxWidth);
  sizes.num_hidden_layers = fields.size("num_hidden_layers", 1, kMaxLayers);
  sizes.num_attention_heads = fields.size("num_attention_heads", 1, 1024);
  sizes.num_key_value_heads = fields.size("num_key_value_heads", 1, 1024);
  sizes.max_position_embeddings = fields.size("max_position_embeddings", 1, kMaxPositions);
  sizes.num_text_tokens = fields.size("num_text_tokens", 1, kMaxVocabulary);
  sizes.num_audio_tokens = fields.size("num_audio_tokens", 2, std::numeric_limits<std::uint16_t>::max());
  sizes.num_vq = fields.size("num_vq", kCodebooks, kCodebooks);
  sizes.rms_norm_eps = fields.number("rms_norm_eps", 1e-12, 1e-1);
  sizes.rope_theta = fields.number("rope_theta", 1.0, 1e9);
  if (sizes.num_attention_heads > 0 && sizes.hidden_size % (2 * sizes.num_attention_heads) != 0) {
    fields.note("num_attention_heads", "must divide hidden_size into heads of even width");
  }
  if (sizes.num_key_value_heads > 0 && sizes.num_attention_heads % sizes.num_key_value_heads != 0) {
    fields.note("num_key_value_heads", "must divide num_attention_heads");
  }
  return sizes;
}

ConvStackSizes read_stack(const JsonFields& fields) {
  ConvStackSizes sizes;
  sizes.idim = fields.size("idim", 1, kMaxWidth);
  sizes.odim = fields.size("odim", 1, kMaxWidth);
  sizes.hidden = fields.size("hidden", 1, kMaxWidth);
  sizes.n_layer = fields.size("n_layer", 1, kMaxLayers);
  sizes.bn_dim = fields.size("bn_dim", 1, kMaxWidth);
  return sizes;
}

QuantizerSizes read_quantizer(const JsonFields& fields) {
  QuantizerSizes sizes;
  sizes.dim = fields.size("dim", 2, kMaxWidth);
  sizes.groups = fields.size("G", 1, kCodebooks);
  sizes.residuals = fields.size("R", 1, kCodebooks);
  for (const json& level : fields.array("levels", 16)) {
    if (!level.is_number_unsigned() || level.get<std::uint64_t>() < 2 || level.get<std::uint64_t>() > 255) {
      fields.note("levels", "must hold numbers from 2 to 255");
      break;
    }
    sizes.levels.push_back(level.get<std::uint32_t>());
  }
  return sizes;
}

VocosSizes read_vocos(const JsonFields& fields) {
  return {fields.size("dim", 1, kMaxWidth), fields.size("intermediate_dim", 1, 4 * kMaxWidth), fields.size("num_layers", 1, kMaxLayers)};
}

// Where one network hands over to the next the widths must agree; found here, one message names both.
void check_joints(const Architecture& a, Problems& problems) {
  const auto require = [&](bool holds, std::string_view what) {
    if (!holds) problems.push_back("architecture: " + std::string(what));
  };
  std::uint64_t codes = 1;
  for (const std::uint32_t level : a.quantizer.levels) codes = std::min<std::uint64_t>(codes * level, kMaxVocabulary);
  require(a.n_fft == 4 * a.hop, "n_fft must be 4 * hop");
  require(2 * a.decoder.idim == a.gpt.hidden_size, "decoder.idim must be half of gpt.hidden_size: a step is two frames");
  require(2 * a.dvae_decoder.idim == a.quantizer.dim, "dvae.decoder.idim must be half of dvae.vq.dim: a step is two frames");
  require(a.dvae_encoder.odim == a.quantizer.dim, "dvae.encoder.odim must be dvae.vq.dim");
  require(a.quantizer.groups * a.quantizer.residuals == a.gpt.num_vq, "dvae.vq.G * dvae.vq.R must be gpt.num_vq");
  require(codes + 1 == a.gpt.num_audio_tokens, "gpt.num_audio_tokens must be the number of codes plus the end token");
}

Architecture read_architecture(const JsonFields& fields) {
  const std::size_t before = fields.problems().size();
  Architecture a;
  a.sample_rate = fields.size("sample_rate", 8000, 48000);
  a.n_fft = fields.size("n_fft", 64, 8192);
  a.hop = fields.size("hop", 16, 2048);
  a.n_mels = fields.size("n_mels", 1, 512);
  a.gpt = read_gpt(fields.object("gpt"));
  a.decoder = read_stack(fields.object("decoder"));
  const JsonFields dvae = fields.object("dvae");
  a.dvae_encoder = read_stack(dvae.object("encoder"));
  a.dvae_decoder = read_stack(dvae.object("decoder"));
  a.quantizer = read_quantizer(dvae.object("vq"));
  a.vocos = read_vocos(fields.object("vocos"));
  if (fields.problems().size() == before) check_joints(a, fields.problems());
  return a;
}

// The absolute path of a file that lies inside `root` (canonical), symbolic links followed; noted and empty otherwise.
fs::path resolve_inside(const fs::path& root, const std::string& relative, const JsonFields& fields) {
  const fs::path path(relative);
  const bool plain =
      path.is_relative() && relative.find('\\') == std::string::npos && relative.find('\0') == std::string::npos &&
      std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".." || part == "." || part.empty(); });
  if (!plain) {
    fields.note("path", "must stay inside the model's folder");
    return {};
  }
  std::error_code error;
  const fs::path resolved = fs::canonical(root / path, error);
  if (error || !fs::is_regular_file(resolved, error)) {
    fields.note("path", "'" + relative + "' is not a readable file");
    return {};
  }
  const auto [end_of_root, rest] = std::mismatch(root.begin(), root.end(), resolved.begin(), resolved.end());
  if (end_of_root != root.end()) {
    fields.note("path", "'" + relative + "' leads outside the model's folder");
    return {};
  }
  return resolved;
}

ManifestFile read_file_entry(const JsonFields& fields, const fs::path& root) {
  ManifestFile file;
  file.sha256 = fields.text("sha256", 64);
  const bool is_hash = file.sha256.size() == 64 && std::all_of(file.sha256.begin(), file.sha256.end(),
                                                               [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (!file.sha256.empty() && !is_hash) fields.note("sha256", "must be 64 lower-case hexadecimal digits");
  file.bytes = fields.integer("bytes", 0, std::uint64_t{1} << 40);
  const std::string relative = fields.text("path", kMaxText);
  if (!relative.empty()) file.path = resolve_inside(root, relative, fields);
  if (!file.path.empty()) {
    std::error_code error;
    const std::uintmax_t actual = fs::file_size(file.path, error);
    if (error || actual != file.bytes) {
      fields.note("bytes", "'" + relative + "' has " + (error ? "an unknown number of" : std::to_string(actual)) + " bytes, expected " +
                               std::to_string(file.bytes));
    }
  }
  return file;
}

std::map<std::string, ManifestFile> read_files(const json* files, const fs::path& root, Problems& problems) {
  std::map<std::string, ManifestFile> by_role;
  if (files == nullptr || !files->is_object() || files->size() > kMaxRoles) {
    problems.push_back("files: must be an object of at most " + std::to_string(kMaxRoles) + " roles");
    return by_role;
  }
  for (const auto& [role, entry] : files->items()) {
    if (!is_identifier(role)) {
      problems.emplace_back("files: a role may only hold letters, digits, '_', '-' and '.'");
      continue;
    }
    by_role[role] = read_file_entry(JsonFields(&entry, "files." + role, problems), root);
  }
  return by_role;
}

std::string read_speaker_value(const JsonFields& fields, SpeakerKind kind) {
  if (kind == SpeakerKind::kNone) return {};
  if (kind != SpeakerKind::kSeed) return fields.text("value", kMaxSpeakerValue);
  const json* const value = fields.find("value");
  if (value == nullptr) return {};
  const std::string digits = value->is_number_unsigned() ? std::to_string(value->get<std::uint64_t>())
                             : value->is_string()        ? value->get<std::string>()
                                                         : "";
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
    fields.note("value", "must be a decimal seed below 2^64");
  return digits;
}

ManifestVoice read_voice(const JsonFields& fields) {
  static constexpr std::array<std::string_view, 4> kKinds{"none", "tensor", "string", "seed"};
  static_assert(static_cast<int>(SpeakerKind::kSeed) == 3);
  ManifestVoice voice;
  voice.id = identifier(fields, "id");
  voice.title = fields.text("title", kMaxText);
  voice.gender = fields.has("gender") ? fields.text("gender", 64) : "";
  for (const json& language : fields.array("languages", kMaxLanguages)) {
    if (!language.is_string() || !is_identifier(language.get_ref<const std::string&>())) {
      fields.note("languages", "must hold language tags");
      break;
    }
    voice.languages.push_back(language.get<std::string>());
  }
  const JsonFields speaker = fields.object("speaker");
  voice.speaker_kind = static_cast<SpeakerKind>(speaker.choice("kind", kKinds));
  voice.speaker_value = read_speaker_value(speaker, voice.speaker_kind);
  return voice;
}

void read_voices(const JsonFields& root, Manifest& manifest) {
  std::set<std::string> ids;
  const std::span<const json> voices = root.array("voices", kMaxVoices);
  if (voices.empty() && root.has("voices")) root.note("voices", "at least one is needed");
  for (std::size_t i = 0; i < voices.size(); ++i) {
    const JsonFields fields(&voices[i], "voices[" + std::to_string(i) + "]", root.problems());
    manifest.voices.push_back(read_voice(fields));
    if (!ids.insert(manifest.voices.back().id).second) fields.note("id", "occurs twice");
  }
  manifest.default_voice = root.text("default_voice", 64);
  if (!manifest.default_voice.empty() && !ids.contains(manifest.default_voice)) root.note("default_voice", "is not the id of a voice");
}

void read_sampling(const JsonFields& fields, SamplingParams& sampling) {
  if (const json* const temperature = fields.has("temperature") ? fields.find("temperature") : nullptr;
      temperature != nullptr && temperature->is_array()) {
    bool valid = temperature->size() == kCodebooks;
    for (std::size_t q = 0; valid && q < kCodebooks; ++q) {
      const json& value = (*temperature)[q];
      valid = value.is_number() && value.get<double>() >= kMinTemperature && value.get<double>() <= kMaxTemperature;
      if (valid) sampling.temperature[q] = value.get<float>();
    }
    if (!valid) fields.note("temperature", "a list must hold 4 numbers from 0.01 to 2");
  } else {
    sampling.temperature.fill(static_cast<float>(fields.number("temperature", kMinTemperature, kMaxTemperature)));
  }
  sampling.top_p = static_cast<float>(fields.number("top_p", 0, 1));
  sampling.top_k = fields.size("top_k", 0, kMaxVocabulary);
  sampling.repetition_penalty = static_cast<float>(fields.number("repetition_penalty", kMinRepetitionPenalty, kMaxRepetitionPenalty));
  sampling.min_steps = fields.size("min_steps", 0, kMaxPositions);
  sampling.max_steps = fields.size("max_steps", 1, kMaxPositions);
  if (sampling.max_steps > 0 && sampling.min_steps > sampling.max_steps) fields.note("min_steps", "must not exceed max_steps");
}

void check_roles(const Manifest& manifest, Problems& problems) {
  std::vector<std::pair<std::string_view, std::string_view>> needed;  // role, why
  for (const std::string_view role : kModelRoles) needed.emplace_back(role, "every model needs it");
  if (manifest.front_end == TextFrontEndKind::kPhones) {
    needed.emplace_back("symbols", "text.front_end is 'phones'");
  } else {
    needed.emplace_back("tokenizer", "text.front_end is 'chattts'");
    needed.emplace_back("tokenizer_config", "text.front_end is 'chattts'");
  }
  for (const ManifestVoice& voice : manifest.voices) {
    if (voice.speaker_kind == SpeakerKind::kTensor) needed.emplace_back("speakers", "a voice names a tensor");
    if (voice.speaker_kind == SpeakerKind::kSeed) needed.emplace_back("speaker_stat", "a voice names a seed");
  }
  std::set<std::string_view> noted;
  for (const auto& [role, why] : needed) {
    if (!manifest.files.contains(std::string(role)) && noted.insert(role).second) {
      problems.push_back("files." + std::string(role) + ": is missing (" + std::string(why) + ")");
    }
  }
}

std::string read_text_file(const fs::path& path, Problems& problems) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > kMaxManifestBytes) {
    problems.push_back("is larger than " + std::to_string(kMaxManifestBytes) + " bytes");
    return {};
  }
  std::ifstream stream;
  if (!error) stream.open(path, std::ios::binary);
  if (!stream.is_open()) {
    problems.emplace_back("cannot be read");
    return {};
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

void read_document(const json& document, Manifest& manifest, Problems& problems) {
  static constexpr std::array<std::string_view, 1> kFamilies{"chattts"};
  static constexpr std::array<std::string_view, 2> kFrontEnds{"phones", "chattts"};
  static constexpr std::array<std::string_view, 2> kPrecisions{"float16", "float32"};
  const JsonFields root(&document, "", problems);
  root.integer("format", kFormat, kFormat);
  root.choice("family", kFamilies);
  manifest.name = identifier(root, "name");
  manifest.title = root.text("title", kMaxText);
  manifest.license = root.text("license", kMaxText);
  manifest.front_end = static_cast<TextFrontEndKind>(root.object("text").choice("front_end", kFrontEnds));
  manifest.speaker_precision = static_cast<SpeakerPrecision>(root.choice("speaker_precision", kPrecisions));
  manifest.architecture = read_architecture(root.object("architecture"));
  manifest.files = read_files(root.find("files"), manifest.directory, problems);
  read_voices(root, manifest);
  read_sampling(root.object("sampling"), manifest.sampling);
  manifest.max_prompt_tokens = root.object("limits").size("max_prompt_tokens", 1, kMaxPositions);
  check_roles(manifest, problems);
  const GptSizes& gpt = manifest.architecture.gpt;
  if (gpt.max_position_embeddings > 0 && manifest.max_prompt_tokens + manifest.sampling.max_steps > gpt.max_position_embeddings) {
    root.note("limits.max_prompt_tokens", "together with sampling.max_steps exceeds max_position_embeddings");
  }
}

}  // namespace

Manifest read_manifest(const std::filesystem::path& directory) {
  Manifest manifest;
  Problems problems;
  std::error_code error;
  manifest.directory = fs::canonical(directory, error);
  const fs::path path = directory / "manifest.json";
  if (error) problems.push_back("the model's folder cannot be opened: " + error.message());
  const std::string text = problems.empty() ? read_text_file(path, problems) : std::string();
  if (problems.empty()) {
    const json document = parse_strict_json(text, kMaxDepth, problems);
    if (problems.empty()) read_document(document, manifest, problems);
  }
  if (!problems.empty()) {
    std::string message = path.string() + ":";
    for (const std::string& problem : problems) message.append("\n  ").append(problem);
    throw std::runtime_error(message);
  }
  return manifest;
}

}  // namespace tts::engine
