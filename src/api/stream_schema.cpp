#include "stream_schema.h"

#include <utility>
#include <vector>

#include "field_table.h"
#include "stream_wire.h"

namespace tts::api {
namespace {

using nlohmann::ordered_json;

constexpr double kMaxUint16 = 65535.0, kMaxUint32 = 4294967295.0, kMaxUint64 = 18446744073709551615.0;

FieldRules text(std::string name, std::string description, bool required = true) {
  return {.name = std::move(name), .description = std::move(description), .required = required};
}

FieldRules flag(std::string name, std::string description, bool required = true) {
  return {.name = std::move(name), .kind = FieldKind::kBoolean, .description = std::move(description), .required = required};
}

FieldRules number(std::string name, std::string description, double min = 0, double max = kMaxUint64, bool required = true) {
  return {.name = std::move(name),
          .kind = FieldKind::kInteger,
          .description = std::move(description),
          .min = min,
          .max = max,
          .required = required};
}

FieldRules characters(std::string description) { return number("characters", std::move(description)); }

SchemaOfMessage message(std::string type, std::string description, std::vector<FieldRules> fields) {
  fields.insert(fields.begin(), FieldRules{.name = "type", .choices = {type}, .required = true});
  return {std::move(type), described_schema(std::move(description), fields_schema(rules_of(fields), false))};
}

void require(SchemaOfMessage& message, const std::string& name, ordered_json schema) {
  message.schema["properties"][name] = std::move(schema);
  message.schema["required"].push_back(name);
}

std::vector<FieldRules> place_to_go_on() {
  return {text("session", "Goes on."), number("epoch", "How many sockets the session has had, this one included.", 1),
          number("from", "seq of the next frame.", 1, kMaxUint32)};
}

ordered_json resumed_contexts() {
  const std::vector<FieldRules> fields{text("context", ""), number("id", "", 1, kMaxUint16),
                                       characters("Of its text that have arrived."), flag("ended", "No more text can come.")};
  return described_schema("The contexts that run, and the last ones that are over.",
                          {{"type", "array"}, {"items", fields_schema(rules_of(fields), false)}});
}

std::vector<SchemaOfMessage> from_server() {
  const auto context = [](std::string description = "", bool required = true) {
    return text("context", std::move(description), required);
  };
  std::vector<std::string> formats;
  for (const auto& format : kStreamFormats) formats.emplace_back(format.name);

  std::vector<SchemaOfMessage> messages;
  messages.push_back(message("ready", "Once a socket is open.",
                             {text("session", "Its name."), text("resume_token", "What 'resume' has to show. A secret."),
                              number("epoch", "How many sockets the session has had, this one included.", 1),
                              text("server", "Its name and version.")}));
  const std::vector<FieldRules> limits{number("max_text_characters", "That may wait to be spoken in a context, in code points.", 1),
                                       number("max_contexts", "Running at once in a session.", 1),
                                       number("max_message_bytes", "Of a message to the server.", 1),
                                       number("resume_ms", "For which a session without a socket is kept; 0 = not at all.")};
  require(messages.back(), "limits", fields_schema(rules_of(limits), false));

  messages.push_back(message("started", "A context has begun.",
                             {context(), number("id", "What its frames carry.", 1, kMaxUint16), text("voice", ""),
                              {.name = "format", .choices = std::move(formats), .required = true},
                              number("sample_rate", "Samples per second.", 8'000, 48'000), number("seed", "That was used."),
                              number("bitrate", "opus and ogg_opus: bits per second to begin with.", 1, kMaxUint32, false),
                              number("pre_skip", "opus and ogg_opus: samples that a decoder gives before the context's first.", 0,
                                     kMaxUint32, false)}));
  messages.push_back(message("sentence", "Before the first frame of a sentence.",
                             {context(), number("index", "Counts from 0."), number("begin", "Its first character in the context's text."),
                              number("end", "The one behind its last."), number("first_sample", "Of the context.")}));
  messages.push_back(message("flushed", "The audio of so much text lies behind this message.", {context(), characters("Of the text.")}));
  messages.push_back(message("done", "After the last frame of a context.",
                             {context(), characters("Of the whole text."), number("samples", "Of the whole audio.")}));
  messages.push_back(message("cancelled", "Nothing of the context follows.",
                             {context(), characters("That were spoken in what was sent, or heard where the client said so."),
                              number("samples", "That were sent.")}));
  messages.push_back(message("error", "What was asked for is not done.",
                             {{.name = "code", .choices = as_choices(stream_code::kAll), .required = true},
                              text("message", "For people."),
                              context("What it is about.", false),
                              flag("ended", "Whether the context is over.", false),
                              text("field", "That is wrong.", false),
                              number("retry_after_ms", "Wait so long before another try.", 1, kMaxUint64, false)}));
  messages.push_back(message("resumed", "The frames behind the client's last follow.", place_to_go_on()));
  require(messages.back(), "contexts", resumed_contexts());
  auto gap = place_to_go_on();
  gap.push_back(context("Of the frame 'from'.", false));
  gap.push_back(number("first_sample", "Of the frame 'from'.", 0, kMaxUint64, false));
  messages.push_back(
      message("resume_gap", "As 'resumed', but frames between the client's last and 'from' are no longer there.", std::move(gap)));
  require(messages.back(), "contexts", resumed_contexts());
  messages.push_back(message("resume_unknown", "There is no such session, or the token is wrong. The socket is a new session.", {}));
  messages.push_back(message("resume_expired", "The session is over. The socket is a new session.", {}));
  messages.push_back(message("draining", "The server stops; what is being spoken is finished.",
                             {number("deadline_ms", "From now; then the socket closes with 1012.")}));
  return messages;
}

ordered_json one_of(std::span<const SchemaOfMessage> messages) {
  auto references = ordered_json::array();
  for (const auto& message : messages) references.push_back({{"$ref", "#/$defs/" + message.type}});
  return {{"oneOf", std::move(references)}};
}

}  // namespace

ordered_json described_schema(std::string description, ordered_json schema) {
  ordered_json described{{"description", std::move(description)}};
  described.update(schema);
  return described;
}

std::string stream_schema(std::span<const SchemaOfMessage> from_client) {
  const auto server = from_server();
  ordered_json definitions{{"client", one_of(from_client)}, {"server", one_of(server)}};
  for (const auto& message : from_client) definitions[message.type] = message.schema;
  for (const auto& message : server) definitions[message.type] = message.schema;
  const ordered_json document{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                              {"title", "Messages of GET /v1/stream"},
                              {"description", "Text frames of both sides; websocket.md tells what they do."},
                              {"oneOf", {{{"$ref", "#/$defs/client"}}, {{"$ref", "#/$defs/server"}}}},
                              {"$defs", std::move(definitions)}};
  return document.dump(2) + "\n";
}

}  // namespace tts::api
