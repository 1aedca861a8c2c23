#include "tts/api/stream_messages.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "tts/base/nearest_name.h"
#include "tts/base/utf8.h"

#include "field_table.h"
#include "speech_fields.h"
#include "stream_schema.h"
#include "stream_wire.h"
#include "strict_json.h"

namespace tts::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxContextBytes = 64;
constexpr std::size_t kMaxIdBytes = 128;  // of a session and its token
constexpr std::uint32_t kDefaultRate = 24'000, kLawRate = 8'000;
constexpr std::uint32_t kMinBitrate = 16'000, kMaxBitrate = 64'000;
constexpr std::uint32_t kDefaultBitrate = 48'000, kFirstAdaptiveBitrate = 32'000;
constexpr std::uint32_t kMaxBufferDelayMs = 10'000, kDefaultBufferDelayMs = 3'000;
constexpr std::uint32_t kMaxBufferedMs = 86'400'000;
constexpr double kMaxUint32 = 4294967295.0, kMaxUint64 = 18446744073709551615.0;

// Cc of Unicode.
bool has_control_character(std::string_view text) {
  const auto decoded = decode_utf8(text);
  return std::any_of(decoded.begin(), decoded.end(), [](char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); });
}

Status check_context(const std::string& name) {
  if (!has_control_character(name)) return Ok{};
  return invalid_field("context", "'context' may not contain control characters");
}

FieldRules type_rules(std::string name) { return {.name = "type", .choices = {std::move(name)}, .required = true}; }

FieldRules context_rules(std::string description, bool required = true) {
  return {.name = "context",
          .description = std::move(description),
          .min = 1,
          .max = kMaxContextBytes,
          .pattern = "^[^\\u0000-\\u001F\\u007F-\\u009F]*$",
          .required = required};
}

FieldRules seq_rules(std::string description) {
  return {.name = "seq",
          .kind = FieldKind::kInteger,
          .description = std::move(description),
          .min = 0,
          .max = kMaxUint32,
          .required = true};
}

template <class Message>
Field<Message> context_field(std::string description) {
  return {context_rules(std::move(description)), [](const json& value, Message& message) -> Status {
            message.context = value.get<std::string>();
            return check_context(message.context);
          }};
}

std::vector<Field<StreamStart>> start_fields(const Catalog& catalog) {
  std::vector<std::string> formats;
  for (const auto& format : kStreamFormats) formats.emplace_back(format.name);

  std::vector<Field<StreamStart>> table;
  table.push_back(context_field<StreamStart>("A name of 1 to 64 bytes that no running context of the session has."));
  table.push_back(voice_field<StreamStart>(catalog, voice_rules(), [](StreamStart& start) -> auto& { return start.request.voice; }));
  table.push_back({{.name = "format",
                    .description = "opus: packets, each behind its length; ogg_opus: an Ogg stream; pcm_s16le: samples; mulaw, alaw: "
                                   "one byte a sample.",
                    .choices = std::move(formats),
                    .fallback = "opus"},
                   [](const json& value, StreamStart& start) -> Status {
                     const auto& name = value.get_ref<const std::string&>();
                     const auto named = [&](const StreamFormat& format) { return format.name == name; };
                     start.request.format.container = std::find_if(kStreamFormats.begin(), kStreamFormats.end(), named)->container;
                     return Ok{};
                   }});
  table.push_back(stored<std::uint32_t, StreamStart>(
      {.name = "sample_rate",
       .kind = FieldKind::kInteger,
       .description = "Samples per second of the audio; 24000 when absent, and for mulaw and alaw 8000, their only one.",
       .choices = {"8000", "16000", "24000", "48000"}},
      [](StreamStart& start) -> auto& { return start.request.format.sample_rate; }));
  table.push_back({{.name = "bitrate",
                    .kind = FieldKind::kInteger,
                    .description = "Bits per second, opus and ogg_opus only; auto begins at 32000 and follows the link.",
                    .min = kMinBitrate,
                    .max = kMaxBitrate,
                    .or_word = "auto",
                    .fallback = kDefaultBitrate},
                   [](const json& value, StreamStart& start) -> Status {
                     start.adaptive_bitrate = value.is_string();
                     start.request.format.bitrate = start.adaptive_bitrate ? kFirstAdaptiveBitrate : value.get<std::uint32_t>();
                     return Ok{};
                   }});
  table.push_back(
      stored<double, StreamStart>(with_fallback(speed_rules(), 1.0), [](StreamStart& start) -> auto& { return start.request.speed; }));
  table.push_back(
      stored<std::uint64_t, StreamStart>(seed_rules("'started'"), [](StreamStart& start) -> auto& { return start.request.seed; }));
  table.push_back(language_field<StreamStart>(with_fallback(language_rules(), "auto"),
                                              [](StreamStart& start) -> auto& { return start.request.text_options.language; }));
  add_sampling_fields(table, [](StreamStart& start) -> auto& { return start.request.sampling; });
  table.push_back(latency_field<StreamStart>([](StreamStart& start) -> auto& { return start.request.latency; }));
  table.push_back(stored<bool, StreamStart>(
      {.name = "timestamps", .kind = FieldKind::kBoolean, .description = "Send 'sentence' before each sentence.", .fallback = true},
      [](StreamStart& start) -> auto& { return start.timestamps; }));
  table.push_back({{.name = "pace",
                    .description = "realtime: audio leaves only a few seconds before it can be played; fast: as it is made.",
                    .choices = {"fast", "realtime"},
                    .fallback = "fast"},
                   [](const json& value, StreamStart& start) -> Status {
                     start.realtime = value == "realtime";
                     return Ok{};
                   }});
  table.push_back({{.name = "max_buffer_delay_ms",
                    .kind = FieldKind::kInteger,
                    .description = "Text that no stop has ended is spoken up to its last clause or word after this time; 0 = never.",
                    .min = 0,
                    .max = kMaxBufferDelayMs,
                    .fallback = kDefaultBufferDelayMs},
                   [](const json& value, StreamStart& start) -> Status {
                     start.request.max_buffer_delay = std::chrono::milliseconds(value.get<std::uint32_t>());
                     return Ok{};
                   }});
  return table;
}

StreamStart default_start(const Catalog& catalog) {
  StreamStart start;
  start.request.voice = catalog.default_voice;
  start.request.format = {.container = audio::Container::kOpusPackets, .sample_rate = 0, .bitrate = 0};  // 0 = not given
  start.request.incremental = true;
  start.request.max_buffer_delay = std::chrono::milliseconds(kDefaultBufferDelayMs);
  return start;
}

// What depends on several fields.
Status finish_start(StreamStart& start) {
  auto& format = start.request.format;
  const auto& [name, container, opus] = stream_format(format.container);
  const bool law = container == audio::Container::kMulaw || container == audio::Container::kAlaw;
  if (format.sample_rate == 0) format.sample_rate = law ? kLawRate : kDefaultRate;
  if (law && format.sample_rate != kLawRate) {
    return invalid_field("sample_rate", fmt::format("{} audio cannot have a sample rate of {} Hz", name, format.sample_rate));
  }
  if (format.bitrate != 0 && !opus) return invalid_field("bitrate", fmt::format("{} audio has no bitrate to choose", name));
  if (format.bitrate == 0 && opus) format.bitrate = kDefaultBitrate;
  return Ok{};
}

std::vector<Field<StreamText>> text_fields(const Catalog& catalog) {
  std::vector<Field<StreamText>> table;
  table.push_back(context_field<StreamText>("A running context."));
  table.push_back({{.name = "text",
                    .description = "Appended as it is: spaces between words are the client's. Empty only together with flush.",
                    .required = true},
                   [c = &catalog](const json& value, StreamText& message) -> Status {
                     message.text = value.get<std::string>();
                     return check_length("text", count_code_points(message.text), *c, "message");
                   }});
  table.push_back(stored<bool, StreamText>(
      {.name = "flush", .kind = FieldKind::kBoolean, .description = "Speak what is held, as 'flush' does.", .fallback = false},
      [](StreamText& message) -> auto& { return message.flush; }));
  return table;
}

Status finish_text(StreamText& message) {
  if (!message.text.empty() || message.flush) return Ok{};
  return invalid_field("text", "'text' is empty; send something to say, or set 'flush'");
}

std::vector<Field<StreamCancel>> cancel_fields() {
  std::vector<Field<StreamCancel>> table;
  table.push_back(context_field<StreamCancel>("A running context."));
  table.push_back(stored<std::uint64_t, StreamCancel>({.name = "samples",
                                                       .kind = FieldKind::kInteger,
                                                       .description = "How many samples of it the listener has heard.",
                                                       .min = 0,
                                                       .max = kMaxUint64},
                                                      [](StreamCancel& message) -> auto& { return message.samples; }));
  return table;
}

std::vector<Field<StreamUpdate>> update_fields(const Catalog& catalog) {
  std::vector<Field<StreamUpdate>> table;
  table.push_back(context_field<StreamUpdate>("A running context. What is changed is so for sentences that have not been begun."));
  table.push_back(voice_field<StreamUpdate>(catalog, voice_rules(), [](StreamUpdate& message) -> auto& { return message.change.voice; }));
  table.push_back(stored<double, StreamUpdate>(speed_rules(), [](StreamUpdate& message) -> auto& { return message.change.speed; }));
  table.push_back(language_field<StreamUpdate>(language_rules(), [](StreamUpdate& message) -> auto& { return message.change.language; }));
  add_sampling_fields(table, [](StreamUpdate& message) -> auto& { return message.change.sampling; });
  auto latency = latency_field<StreamUpdate>([](StreamUpdate& message) -> auto& { return message.change.latency; });
  latency.description = "As in 'start'.";
  table.push_back(std::move(latency));
  return table;
}

Status finish_update(StreamUpdate& message) {
  const auto& change = message.change;
  const auto& sampling = change.sampling;
  if (change.voice || change.speed || change.language || change.latency || sampling.temperature || sampling.top_p || sampling.top_k ||
      sampling.repetition_penalty) {
    return Ok{};
  }
  return invalid_field("", "the update changes nothing; name a field to change, such as 'voice' or 'speed'");
}

std::vector<Field<StreamAck>> ack_fields() {
  std::vector<Field<StreamAck>> table;
  table.push_back(stored<std::uint32_t, StreamAck>(seq_rules("Every frame up to it has arrived and need not be kept."),
                                                   [](StreamAck& message) -> auto& { return message.seq; }));
  table.push_back({context_rules("The context that buffered_ms is about; absent = all.", false),
                   [](const json& value, StreamAck& message) -> Status {
                     message.context = value.get<std::string>();
                     return check_context(*message.context);
                   }});
  table.push_back(stored<std::uint32_t, StreamAck>({.name = "buffered_ms",
                                                    .kind = FieldKind::kInteger,
                                                    .description = "How long the listener can play what it has.",
                                                    .min = 0,
                                                    .max = kMaxBufferedMs},
                                                   [](StreamAck& message) -> auto& { return message.buffered_ms; }));
  return table;
}

std::vector<Field<StreamResume>> resume_fields() {
  std::vector<Field<StreamResume>> table;
  table.push_back(
      stored<std::string, StreamResume>({.name = "session", .description = "Of 'ready'.", .min = 1, .max = kMaxIdBytes, .required = true},
                                        [](StreamResume& message) -> auto& { return message.session; }));
  table.push_back(stored<std::string, StreamResume>(
      {.name = "token", .description = "resume_token of 'ready'.", .min = 1, .max = kMaxIdBytes, .required = true},
      [](StreamResume& message) -> auto& { return message.token; }));
  table.push_back(stored<std::uint32_t, StreamResume>(seq_rules("Of the last binary frame that arrived; 0 = none."),
                                                      [](StreamResume& message) -> auto& { return message.seq; }));
  return table;
}

template <class Message>
std::vector<Field<Message>> context_only() {
  return {context_field<Message>("A running context.")};
}

template <class Message>
Status nothing_to_finish(Message&) {
  return Ok{};
}

// One type of message: how it is read, and its schema.
struct Kind {
  std::string name;
  nlohmann::ordered_json schema;
  std::function<Result<StreamMessage>(const json& body)> read;
};

template <class Message>
Kind make_kind(std::string name, std::string description, std::vector<Field<Message>> fields, Message initial = {},
               Status (*finish)(Message&) = nothing_to_finish<Message>) {
  fields.insert(fields.begin(), Field<Message>{type_rules(name), [](const json&, Message&) -> Status { return Ok{}; }});
  auto schema = described_schema(std::move(description), fields_schema(rules_of(fields), false));
  auto read = [fields = std::move(fields), initial = std::move(initial), finish](const json& body) -> Result<StreamMessage> {
    Message message = initial;
    if (auto status = apply_fields(fields, body, nullptr, message); !status) return std::move(status).error();
    if (auto status = finish(message); !status) return std::move(status).error();
    return StreamMessage(std::move(message));
  };
  return {std::move(name), std::move(schema), std::move(read)};
}

std::vector<Kind> kinds_of_messages(const Catalog& catalog) {
  std::vector<Kind> kinds;
  kinds.push_back(make_kind<StreamStart>("start", "Begins a context.", start_fields(catalog), default_start(catalog), finish_start));
  kinds.push_back(make_kind<StreamText>("text", "More text of a context.", text_fields(catalog), {}, finish_text));
  kinds.push_back(make_kind<StreamFlush>("flush", "Speak what is held, though no sentence has ended.", context_only<StreamFlush>()));
  kinds.push_back(make_kind<StreamEnd>("end", "No more text; speak what is held.", context_only<StreamEnd>()));
  kinds.push_back(make_kind<StreamCancel>("cancel", "Stop at once.", cancel_fields()));
  kinds.push_back(
      make_kind<StreamUpdate>("update", "Changes of voice and the like; at least one.", update_fields(catalog), {}, finish_update));
  kinds.back().schema["minProperties"] = 3;  // type, context, and what changes
  kinds.push_back(make_kind<StreamAck>("ack", "What has arrived.", ack_fields()));
  kinds.push_back(
      make_kind<StreamResume>("resume", "Goes on with the session of a broken link; the first message of a socket.", resume_fields()));
  return kinds;
}

}  // namespace

const StreamFormat& stream_format(audio::Container container) noexcept {
  const auto found = std::find_if(kStreamFormats.begin(), kStreamFormats.end(),
                                  [&](const StreamFormat& format) { return format.container == container; });
  assert(found != kStreamFormats.end());
  return *found;
}

struct StreamApi::Impl {
  explicit Impl(const Catalog& given) : catalog(given), kinds(kinds_of_messages(catalog)) {
    for (const auto& kind : kinds) types.choices.push_back(kind.name);
    std::vector<SchemaOfMessage> messages;
    for (const auto& kind : kinds) messages.push_back({kind.name, kind.schema});
    schema = stream_schema(messages);
  }

  Result<json> read(std::string_view text) const {
    if (text.size() > kMaxStreamMessageBytes) {
      return Error{.code = ErrorCode::kTooLarge,
                   .message = fmt::format("the message has {} bytes; a message may have {}", text.size(), kMaxStreamMessageBytes),
                   .param = {},
                   .retry_after = {}};
    }
    return parse_strict_json_object(text, {}, "message");
  }

  Error unknown_type(const std::string& type) const {
    const std::vector<std::string_view> names(types.choices.begin(), types.choices.end());
    const auto near = nearest_name(type, names);
    std::string hint;
    if (near.empty()) {
      for (const auto name : names) hint += (hint.empty() ? "; the types are " : ", ") + std::string(name);
    } else {
      hint = "; did you mean '" + std::string(near) + "'?";
    }
    return invalid_field("type", "unknown type " + in_quotes(type) + hint);
  }

  const Catalog catalog;
  const std::vector<Kind> kinds;
  FieldRules types{.name = "type", .required = true};
  std::string schema;
};

StreamApi::StreamApi(const Catalog& catalog) : impl_(std::make_unique<const Impl>(catalog)) {}
StreamApi::~StreamApi() = default;

Result<StreamMessage> StreamApi::parse(std::string_view json_text) const {
  const auto body = impl_->read(json_text);
  if (!body) return body.error();
  const auto type = body->find("type");
  if (type != body->end() && type->is_string()) {
    const auto& name = type->get_ref<const std::string&>();
    for (const auto& kind : impl_->kinds) {
      if (kind.name == name) return kind.read(*body);
    }
    return impl_->unknown_type(name);
  }
  return field_value(impl_->types, *body).error();  // it is missing, or no string
}

std::string StreamApi::context_of(std::string_view json_text) const {
  const auto body = impl_->read(json_text);
  if (!body) return {};
  const auto context = body->find("context");
  if (context == body->end() || !context->is_string()) return {};
  const auto& name = context->get_ref<const std::string&>();
  return name.size() <= kMaxContextBytes && check_context(name) ? name : std::string();
}

const std::string& StreamApi::schema_json() const noexcept { return impl_->schema; }

}  // namespace tts::api
