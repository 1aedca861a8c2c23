#include "dialects.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "tts/base/utf8.h"

#include "speech_fields.h"
#include "strict_json.h"

namespace tts::api {
namespace {

using nlohmann::json;

constexpr double kMinBitrate = 6'000, kMaxBitrate = 320'000;  // the outer limits of Opus and mp3; the encoder knows the exact ones
constexpr double kMaxStyleBytes = 256;

struct OpenAiVoice {
  std::string_view name, gender;
};
constexpr std::array<OpenAiVoice, 13> kOpenAiVoices{{{"alloy", "female"},
                                                     {"ash", "male"},
                                                     {"ballad", "male"},
                                                     {"coral", "female"},
                                                     {"echo", "male"},
                                                     {"fable", "male"},
                                                     {"nova", "female"},
                                                     {"onyx", "male"},
                                                     {"sage", "female"},
                                                     {"shimmer", "female"},
                                                     {"verse", "male"},
                                                     {"marin", "female"},
                                                     {"cedar", "male"}}};

bool is_blank(std::string_view text) {
  const auto blank = [](char32_t c) {
    return c == U' ' || (c >= U'\t' && c <= U'\r') || c == 0xA0 || c == 0x3000 || (c >= 0x2000 && c <= 0x200B) || c == 0xFEFF;
  };
  const auto decoded = decode_utf8(text);
  return std::all_of(decoded.begin(), decoded.end(), blank);
}

Status set_text(std::string_view field, const json& value, const Catalog& catalog, SpeechCall& call) {
  const auto& text = value.get_ref<const std::string&>();
  const auto characters = count_code_points(text);
  if (auto status = check_length(field, characters, catalog, "request"); !status) return status;
  if (is_blank(text)) return invalid_field(field, fmt::format("'{}' is empty; send something to say", field));
  call.request.text = text;
  call.characters = characters;
  return Ok{};
}

Error unsupported(std::string_view field, std::string message) {
  return {.code = ErrorCode::kUnsupported, .message = std::move(message), .param = std::string(field), .retry_after = {}};
}

Status set_container(const json& value, SpeechCall& call) {
  call.request.format.container = *audio::parse_container(value.get_ref<const std::string&>());
  return Ok{};
}

}  // namespace

SpeechCall default_call(const Catalog& catalog, audio::Container container) {
  SpeechCall call;
  call.request.voice = catalog.default_voice;
  call.request.format = {.container = container, .sample_rate = catalog.sample_rate, .bitrate = 0};
  call.timeout = std::chrono::milliseconds(catalog.max_timeout_ms);
  return call;
}

Status check_call(const SpeechCall& call, const Catalog& catalog) {
  const auto& format = call.request.format;
  if (!audio::sample_rate_supported(format.container, format.sample_rate)) {
    return invalid_field(
        "sample_rate", fmt::format("{} audio cannot have a sample rate of {} Hz", audio::to_string(format.container), format.sample_rate));
  }
  const bool lossy = format.container == audio::Container::kMp3 || format.container == audio::Container::kOggOpus;
  if (format.bitrate != 0 && !lossy)
    return invalid_field("bitrate", fmt::format("{} audio has no bitrate to choose", audio::to_string(format.container)));
  const auto& sampling = call.request.sampling;
  const auto most = sampling.max_steps.value_or(catalog.sampling.max_steps);
  if (sampling.min_steps && *sampling.min_steps > most) {
    return invalid_field("min_steps", fmt::format("'min_steps' ({}) may not exceed 'max_steps' ({})", *sampling.min_steps, most));
  }
  return Ok{};
}

std::vector<Field<SpeechCall>> native_fields(const Catalog& catalog) {
  const Catalog* const c = &catalog;
  const double max_steps = catalog.sampling.max_steps;
  std::vector<Field<SpeechCall>> table;
  table.push_back({{.name = "text",
                    .description = fmt::format("What to say: 1 to {} characters.", catalog.max_text_chars),
                    .required = true},
                   [c](const json& value, SpeechCall& call) { return set_text("text", value, *c, call); }});
  table.push_back(voice_field<SpeechCall>(catalog, with_fallback(voice_rules(), catalog.default_voice),
                                          [](SpeechCall& call) -> auto& { return call.request.voice; }));
  table.push_back({{.name = "format",
                    .description = "Container and codec of the audio. pcm is signed 16-bit little endian, mono; opus is in Ogg.",
                    .choices = {"wav", "pcm", "mp3", "flac", "opus"},
                    .fallback = "wav"},
                   set_container});
  table.push_back(stored<std::uint32_t, SpeechCall>(
      {.name = "sample_rate",
       .kind = FieldKind::kInteger,
       .description = "Samples per second of the audio; opus and mp3 take only the rates of their standards.",
       .min = 8'000,
       .max = 48'000,
       .fallback = catalog.sample_rate},
      [](SpeechCall& call) -> auto& { return call.request.format.sample_rate; }));
  table.push_back(stored<std::uint32_t, SpeechCall>({.name = "bitrate",
                                                     .kind = FieldKind::kInteger,
                                                     .description = "Bits per second, mp3 and opus only; absent = the codec's default.",
                                                     .min = kMinBitrate,
                                                     .max = kMaxBitrate},
                                                    [](SpeechCall& call) -> auto& { return call.request.format.bitrate; }));
  table.push_back(
      stored<double, SpeechCall>(with_fallback(speed_rules(), 1.0), [](SpeechCall& call) -> auto& { return call.request.speed; }));
  table.push_back(
      stored<std::uint64_t, SpeechCall>(seed_rules("the reply's X-Seed"), [](SpeechCall& call) -> auto& { return call.request.seed; }));
  add_sampling_fields(table, [](SpeechCall& call) -> auto& { return call.request.sampling; });
  table.push_back(stored<std::uint32_t, SpeechCall>({.name = "min_steps",
                                                     .kind = FieldKind::kInteger,
                                                     .description = "A sentence cannot end before this many steps.",
                                                     .min = 0,
                                                     .max = max_steps},
                                                    [](SpeechCall& call) -> auto& { return call.request.sampling.min_steps; }));
  table.push_back(stored<std::uint32_t, SpeechCall>({.name = "max_steps",
                                                     .kind = FieldKind::kInteger,
                                                     .description = "A sentence is cut after this many steps.",
                                                     .min = 1,
                                                     .max = max_steps,
                                                     .fallback = catalog.sampling.max_steps},
                                                    [](SpeechCall& call) -> auto& { return call.request.sampling.max_steps; }));
  table.push_back(language_field<SpeechCall>(with_fallback(language_rules(), "auto"),
                                             [](SpeechCall& call) -> auto& { return call.request.text_options.language; }));
  table.push_back(stored<bool, SpeechCall>({.name = "normalize",
                                            .kind = FieldKind::kBoolean,
                                            .description = "Write out numbers, dates, units and the like before speaking.",
                                            .fallback = true},
                                           [](SpeechCall& call) -> auto& { return call.request.text_options.normalize; }));
  table.push_back(stored<bool, SpeechCall>({.name = "split",
                                            .kind = FieldKind::kBoolean,
                                            .description = "Cut the text into sentences; false speaks it as one.",
                                            .fallback = true},
                                           [](SpeechCall& call) -> auto& { return call.request.text_options.split; }));
  table.push_back({{.name = "style",
                    .description = "Style markup of ChatTTS models, such as [speed_5]; an error on models without styles.",
                    .max = kMaxStyleBytes},
                   [c](const json& value, SpeechCall& call) -> Status {
                     if (value.get_ref<const std::string&>().empty()) return Ok{};
                     if (!c->styles) return unsupported("style", "the model " + c->model + " has no styles; leave 'style' out");
                     call.request.text_options.style_prompt = value;
                     return Ok{};
                   }});
  table.push_back({{.name = "refine",
                    .kind = FieldKind::kBoolean,
                    .description = "Let a ChatTTS model rewrite the text with pauses and laughter first; the object form carries its "
                                   "markup.",
                    .max = kMaxStyleBytes,
                    .object_key = "prompt",
                    .fallback = false},
                   [c](const json& value, SpeechCall& call) -> Status {
                     if (value == false) return Ok{};
                     if (!c->refine) return unsupported("refine", "the model " + c->model + " has no refine pass; leave 'refine' out");
                     call.request.refine = synthesis::RefineOptions{.prompt = value.is_string() ? value.get<std::string>() : ""};
                     return Ok{};
                   }});
  table.push_back({{.name = "use_decoder",
                    .kind = FieldKind::kBoolean,
                    .description = "true turns hidden states into sound (better); false uses the codes.",
                    .fallback = true},
                   [](const json& value, SpeechCall& call) -> Status {
                     call.request.mel_path = value == true ? engine::MelPath::kHidden : engine::MelPath::kCodes;
                     return Ok{};
                   }});
  table.push_back({{.name = "packet_ms",
                    .kind = FieldKind::kInteger,
                    .description = "Milliseconds of audio in every streamed packet; absent = as the audio is made, which is soonest.",
                    .min = 20,
                    .max = 1'000},
                   [](const json& value, SpeechCall& call) -> Status {
                     call.request.packet = std::chrono::milliseconds(value.get<std::uint32_t>());
                     return Ok{};
                   }});
  table.push_back(latency_field<SpeechCall>([](SpeechCall& call) -> auto& { return call.request.latency; }));
  table.push_back({{.name = "timeout_ms",
                    .kind = FieldKind::kInteger,
                    .description = "Give up when the whole audio is not made within this time.",
                    .min = 1,
                    .max = static_cast<double>(catalog.max_timeout_ms),
                    .fallback = catalog.max_timeout_ms},
                   [](const json& value, SpeechCall& call) -> Status {
                     call.timeout = std::chrono::milliseconds(value.get<std::uint32_t>());
                     return Ok{};
                   }});
  return table;
}

std::map<std::string, std::string> resolve_voice_aliases(const Catalog& catalog) {
  std::map<std::string, std::string> aliases;
  for (const auto& [alias, id] : catalog.openai.voices) {
    if (!has_voice(catalog, id)) {
      throw std::invalid_argument("the OpenAI voice alias '" + alias + "' names the voice '" + id + "', but the model has " +
                                  voice_ids(catalog));
    }
    aliases[alias] = id;
  }
  std::map<std::string_view, std::size_t> used;  // voices of one gender are handed out in turn
  for (const auto& [name, gender] : kOpenAiVoices) {
    std::vector<std::string> fitting;
    for (const auto& voice : catalog.voices) {
      if (voice.gender == gender) fitting.push_back(voice.id);
    }
    aliases.try_emplace(std::string(name), fitting.empty() ? catalog.default_voice : fitting[used[gender]++ % fitting.size()]);
  }
  return aliases;
}

std::vector<Field<SpeechCall>> openai_fields(const Catalog& catalog, const std::map<std::string, std::string>& voice_aliases) {
  const Catalog* const c = &catalog;
  std::vector<Field<SpeechCall>> table;
  table.push_back({{.name = "model",
                    .description = "The served model's name or one of its aliases; GET /v1/models lists them.",
                    .required = true},
                   [c](const json& value, SpeechCall&) -> Status {
                     const auto& aliases = c->openai.models;
                     if (value == c->model ||
                         std::find(aliases.begin(), aliases.end(), value.get_ref<const std::string&>()) != aliases.end())
                       return Ok{};
                     return Error{.code = ErrorCode::kNotFound,
                                  .message = "there is no model " + in_quotes(value.get_ref<const std::string&>()) + "; this server has '" +
                                             c->model + "' (GET /v1/models)",
                                  .param = "model",
                                  .retry_after = {}};
                   }});
  table.push_back({{.name = "input",
                    .description = fmt::format("What to say: 1 to {} characters.", catalog.max_text_chars),
                    .required = true},
                   [c](const json& value, SpeechCall& call) { return set_text("input", value, *c, call); }});
  table.push_back({{.name = "voice",
                    .description = "A voice id of this server or one of OpenAI's voice names.",
                    .object_key = "id",
                    .required = true},
                   [c, aliases = voice_aliases](const json& value, SpeechCall& call) -> Status {
                     const auto& id = value.get_ref<const std::string&>();
                     const auto alias = aliases.find(id);
                     const auto& voice = alias == aliases.end() || has_voice(*c, id) ? id : alias->second;
                     if (auto status = check_voice(voice, *c); !status) return status;
                     call.request.voice = voice;
                     return Ok{};
                   }});
  table.push_back({{.name = "instructions",
                    .description = "Accepted for compatibility; the model cannot follow instructions, and a Warning header says so."},
                   [](const json& value, SpeechCall& call) -> Status {
                     if (!value.get_ref<const std::string&>().empty())
                       call.warnings.emplace_back("ignored instructions: the model cannot follow them");
                     return Ok{};
                   }});
  table.push_back({{.name = "response_format",
                    .description = "Container and codec of the audio; aac is not offered.",
                    .choices = {"mp3", "opus", "aac", "flac", "wav", "pcm"},
                    .fallback = "mp3"},
                   [](const json& value, SpeechCall& call) -> Status {
                     if (value == "aac") return unsupported("response_format", "aac is not offered; choose mp3, opus, flac, wav or pcm");
                     return set_container(value, call);
                   }});
  table.push_back(
      stored<double, SpeechCall>(with_fallback(speed_rules(), 1.0), [](SpeechCall& call) -> auto& { return call.request.speed; }));
  table.push_back({{.name = "stream_format",
                    .description = "audio: the bytes as they are made; sse: server-sent events with base64 audio.",
                    .choices = {"audio", "sse"},
                    .fallback = "audio"},
                   [](const json& value, SpeechCall& call) -> Status {
                     call.sse = value == "sse";
                     return Ok{};
                   }});
  return table;
}

}  // namespace tts::api
