#include "dialects.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "tts/base/utf8.h"

#include "strict_json.h"

namespace tts::api {
namespace {

using nlohmann::json;

constexpr double kMinSpeed = 0.5, kMaxSpeed = 2.0;
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
  if (characters > catalog.max_text_chars) {
    return Error{.code = ErrorCode::kTooLarge,
                 .message = fmt::format("'{}' has {} characters; this server takes at most {} per request (max_text_chars)", field,
                                        characters, catalog.max_text_chars),
                 .param = std::string(field),
                 .retry_after = {}};
  }
  if (is_blank(text)) return invalid_field(field, fmt::format("'{}' is empty; send something to say", field));
  call.request.text = text;
  call.characters = characters;
  return Ok{};
}

std::string voice_ids(const Catalog& catalog) {
  std::string ids;
  for (const auto& voice : catalog.voices) ids += (ids.empty() ? "" : ", ") + voice.id;
  return ids;
}

bool has_voice(const Catalog& catalog, std::string_view id) {
  return std::any_of(catalog.voices.begin(), catalog.voices.end(), [&](const CatalogVoice& voice) { return voice.id == id; });
}

Error unknown_voice(const std::string& id, const Catalog& catalog) {
  return invalid_field("voice", "there is no voice " + in_quotes(id) + "; this server has " + voice_ids(catalog) + " (GET /v1/voices)");
}

Error unsupported(std::string_view field, std::string message) {
  return {.code = ErrorCode::kUnsupported, .message = std::move(message), .param = std::string(field), .retry_after = {}};
}

Status set_speed(const json& value, SpeechCall& call) {
  call.request.speed = value.get<double>();
  return Ok{};
}

Status set_container(const json& value, SpeechCall& call) {
  call.request.format.container = *audio::parse_container(value.get_ref<const std::string&>());
  return Ok{};
}

// Shorthand for the common case: a number or flag that goes straight into one member.
template <class T, class Member>
auto store(Member member) {
  return [member](const json& value, SpeechCall& call) -> Status {
    member(call) = value.get<T>();
    return Ok{};
  };
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

std::vector<Field> native_fields(const Catalog& catalog) {
  const Catalog* const c = &catalog;
  const double max_steps = catalog.sampling.max_steps;
  std::vector<Field> table;
  table.push_back({.name = "text",
                   .description = fmt::format("What to say: 1 to {} characters.", catalog.max_text_chars),
                   .required = true,
                   .apply = [c](const json& value, SpeechCall& call) { return set_text("text", value, *c, call); }});
  table.push_back({.name = "voice",
                   .description = "A voice id; GET /v1/voices lists them.",
                   .fallback = catalog.default_voice,
                   .apply = [c](const json& value, SpeechCall& call) -> Status {
                     if (!has_voice(*c, value.get_ref<const std::string&>())) return unknown_voice(value, *c);
                     call.request.voice = value;
                     return Ok{};
                   }});
  table.push_back({.name = "format",
                   .description = "Container and codec of the audio. pcm is signed 16-bit little endian, mono; opus is in Ogg.",
                   .choices = {"wav", "pcm", "mp3", "flac", "opus"},
                   .fallback = "wav",
                   .apply = set_container});
  table.push_back({.name = "sample_rate",
                   .kind = FieldKind::kInteger,
                   .description = "Samples per second of the audio; opus and mp3 take only the rates of their standards.",
                   .min = 8'000,
                   .max = 48'000,
                   .fallback = catalog.sample_rate,
                   .apply = store<std::uint32_t>([](SpeechCall& call) -> auto& { return call.request.format.sample_rate; })});
  table.push_back({.name = "bitrate",
                   .kind = FieldKind::kInteger,
                   .description = "Bits per second, mp3 and opus only; absent = the codec's default.",
                   .min = kMinBitrate,
                   .max = kMaxBitrate,
                   .apply = store<std::uint32_t>([](SpeechCall& call) -> auto& { return call.request.format.bitrate; })});
  table.push_back({.name = "speed",
                   .kind = FieldKind::kNumber,
                   .description = "Speaking rate with the pitch kept; 2 is twice as fast.",
                   .min = kMinSpeed,
                   .max = kMaxSpeed,
                   .fallback = 1.0,
                   .apply = set_speed});
  table.push_back({.name = "seed",
                   .kind = FieldKind::kInteger,
                   .description = "Same seed, same request, same audio. Absent = random; the reply's X-Seed tells which.",
                   .min = 0,
                   .max = 18446744073709551615.0,
                   .apply = store<std::uint64_t>([](SpeechCall& call) -> auto& { return call.request.seed; })});
  table.push_back({.name = "temperature",
                   .kind = FieldKind::kNumber,
                   .description = "Sampling temperature of the audio codes.",
                   .min = engine::kMinTemperature,
                   .max = engine::kMaxTemperature,
                   .apply = store<float>([](SpeechCall& call) -> auto& { return call.request.sampling.temperature; })});
  table.push_back({.name = "top_p",
                   .kind = FieldKind::kNumber,
                   .description = "Keep the most probable codes up to this share; 1 = off.",
                   .min = 0.0,
                   .max = 1.0,
                   .apply = store<float>([](SpeechCall& call) -> auto& { return call.request.sampling.top_p; })});
  table.push_back({.name = "top_k",
                   .kind = FieldKind::kInteger,
                   .description = "Keep this many of the most probable codes; 0 = off.",
                   .min = 0,
                   .max = 1'000,
                   .apply = store<std::uint32_t>([](SpeechCall& call) -> auto& { return call.request.sampling.top_k; })});
  table.push_back({.name = "repetition_penalty",
                   .kind = FieldKind::kNumber,
                   .description = "Above 1 makes recent codes less likely; 1 = off.",
                   .min = engine::kMinRepetitionPenalty,
                   .max = engine::kMaxRepetitionPenalty,
                   .apply = store<float>([](SpeechCall& call) -> auto& { return call.request.sampling.repetition_penalty; })});
  table.push_back({.name = "min_steps",
                   .kind = FieldKind::kInteger,
                   .description = "A sentence cannot end before this many steps.",
                   .min = 0,
                   .max = max_steps,
                   .apply = store<std::uint32_t>([](SpeechCall& call) -> auto& { return call.request.sampling.min_steps; })});
  table.push_back({.name = "max_steps",
                   .kind = FieldKind::kInteger,
                   .description = "A sentence is cut after this many steps.",
                   .min = 1,
                   .max = max_steps,
                   .fallback = catalog.sampling.max_steps,
                   .apply = store<std::uint32_t>([](SpeechCall& call) -> auto& { return call.request.sampling.max_steps; })});
  table.push_back({.name = "language",
                   .description = "Language of numbers and the like; auto decides sentence by sentence.",
                   .choices = {"auto", "zh", "en"},
                   .fallback = "auto",
                   .apply = [](const json& value, SpeechCall& call) -> Status {
                     call.request.text_options.language = value == "auto" ? "" : value.get<std::string>();
                     return Ok{};
                   }});
  table.push_back({.name = "normalize",
                   .kind = FieldKind::kBoolean,
                   .description = "Write out numbers, dates, units and the like before speaking.",
                   .fallback = true,
                   .apply = store<bool>([](SpeechCall& call) -> auto& { return call.request.text_options.normalize; })});
  table.push_back({.name = "split",
                   .kind = FieldKind::kBoolean,
                   .description = "Cut the text into sentences; false speaks it as one.",
                   .fallback = true,
                   .apply = store<bool>([](SpeechCall& call) -> auto& { return call.request.text_options.split; })});
  table.push_back({.name = "style",
                   .description = "Style markup of ChatTTS models, such as [speed_5]; an error on models without styles.",
                   .max = kMaxStyleBytes,
                   .apply = [c](const json& value, SpeechCall& call) -> Status {
                     if (value.get_ref<const std::string&>().empty()) return Ok{};
                     if (!c->styles) return unsupported("style", "the model " + c->model + " has no styles; leave 'style' out");
                     call.request.text_options.style_prompt = value;
                     return Ok{};
                   }});
  table.push_back(
      {.name = "refine",
       .kind = FieldKind::kBoolean,
       .description = "Let a ChatTTS model rewrite the text with pauses and laughter first; the object form carries its markup.",
       .max = kMaxStyleBytes,
       .object_key = "prompt",
       .fallback = false,
       .apply = [c](const json& value, SpeechCall& call) -> Status {
         if (value == false) return Ok{};
         if (!c->refine) return unsupported("refine", "the model " + c->model + " has no refine pass; leave 'refine' out");
         call.request.refine = synthesis::RefineOptions{.prompt = value.is_string() ? value.get<std::string>() : ""};
         return Ok{};
       }});
  table.push_back({.name = "use_decoder",
                   .kind = FieldKind::kBoolean,
                   .description = "true turns hidden states into sound (better); false uses the codes.",
                   .fallback = true,
                   .apply = [](const json& value, SpeechCall& call) -> Status {
                     call.request.mel_path = value == true ? engine::MelPath::kHidden : engine::MelPath::kCodes;
                     return Ok{};
                   }});
  table.push_back({.name = "packet_ms",
                   .kind = FieldKind::kInteger,
                   .description = "Milliseconds of audio in every streamed packet; absent = as the audio is made, which is soonest.",
                   .min = 20,
                   .max = 1'000,
                   .apply = [](const json& value, SpeechCall& call) -> Status {
                     call.request.packet = std::chrono::milliseconds(value.get<std::uint32_t>());
                     return Ok{};
                   }});
  table.push_back({.name = "latency",
                   .description = "low: the first sound comes as early as possible, its samples a close approximation; exact: every sample is "
                                  "that of the whole sentence decoded at once; absent = as the server is configured.",
                   .choices = {"low", "exact"},
                   .apply = [](const json& value, SpeechCall& call) -> Status {
                     call.request.latency = value == "low" ? engine::Latency::kLow : engine::Latency::kExact;
                     return Ok{};
                   }});
  table.push_back({.name = "timeout_ms",
                   .kind = FieldKind::kInteger,
                   .description = "Give up when the whole audio is not made within this time.",
                   .min = 1,
                   .max = static_cast<double>(catalog.max_timeout_ms),
                   .fallback = catalog.max_timeout_ms,
                   .apply = [](const json& value, SpeechCall& call) -> Status {
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

std::vector<Field> openai_fields(const Catalog& catalog, const std::map<std::string, std::string>& voice_aliases) {
  const Catalog* const c = &catalog;
  std::vector<Field> table;
  table.push_back({.name = "model",
                   .description = "The served model's name or one of its aliases; GET /v1/models lists them.",
                   .required = true,
                   .apply = [c](const json& value, SpeechCall&) -> Status {
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
  table.push_back({.name = "input",
                   .description = fmt::format("What to say: 1 to {} characters.", catalog.max_text_chars),
                   .required = true,
                   .apply = [c](const json& value, SpeechCall& call) { return set_text("input", value, *c, call); }});
  table.push_back({.name = "voice",
                   .description = "A voice id of this server or one of OpenAI's voice names.",
                   .object_key = "id",
                   .required = true,
                   .apply = [c, aliases = voice_aliases](const json& value, SpeechCall& call) -> Status {
                     const auto& id = value.get_ref<const std::string&>();
                     if (has_voice(*c, id)) {
                       call.request.voice = id;
                     } else if (const auto alias = aliases.find(id); alias != aliases.end()) {
                       call.request.voice = alias->second;
                     } else {
                       return unknown_voice(id, *c);
                     }
                     return Ok{};
                   }});
  table.push_back({.name = "instructions",
                   .description = "Accepted for compatibility; the model cannot follow instructions, and a Warning header says so.",
                   .apply = [](const json& value, SpeechCall& call) -> Status {
                     if (!value.get_ref<const std::string&>().empty())
                       call.warnings.emplace_back("ignored instructions: the model cannot follow them");
                     return Ok{};
                   }});
  table.push_back({.name = "response_format",
                   .description = "Container and codec of the audio; aac is not offered.",
                   .choices = {"mp3", "opus", "aac", "flac", "wav", "pcm"},
                   .fallback = "mp3",
                   .apply = [](const json& value, SpeechCall& call) -> Status {
                     if (value == "aac") return unsupported("response_format", "aac is not offered; choose mp3, opus, flac, wav or pcm");
                     return set_container(value, call);
                   }});
  table.push_back({.name = "speed",
                   .kind = FieldKind::kNumber,
                   .description = "Speaking rate with the pitch kept.",
                   .min = kMinSpeed,
                   .max = kMaxSpeed,
                   .fallback = 1.0,
                   .apply = set_speed});
  table.push_back({.name = "stream_format",
                   .description = "audio: the bytes as they are made; sse: server-sent events with base64 audio.",
                   .choices = {"audio", "sse"},
                   .fallback = "audio",
                   .apply = [](const json& value, SpeechCall& call) -> Status {
                     call.sse = value == "sse";
                     return Ok{};
                   }});
  return table;
}

}  // namespace tts::api
