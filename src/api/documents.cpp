#include "documents.h"

#include <nlohmann/json.hpp>

namespace tts::api {
namespace {

using nlohmann::ordered_json;

ordered_json model_entry(const std::string& id, const Catalog& catalog) {
  ordered_json entry{{"id", id}, {"object", "model"}, {"created", 0}, {"owned_by", "chattts-server"}};
  if (id == catalog.model) {
    entry["title"] = catalog.model_title;
    entry["license"] = catalog.license;
    entry["sample_rate"] = catalog.sample_rate;
  } else {
    entry["alias_of"] = catalog.model;
  }
  return entry;
}

ordered_json json_reply(const char* description) {
  return {{"description", description}, {"content", {{"application/json", ordered_json::object()}}}};
}

ordered_json error_reply(const char* description) {
  return {{"description", description}, {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
}

ordered_json audio_content() {
  ordered_json content;
  for (const auto container :
       {audio::Container::kWav, audio::Container::kPcm, audio::Container::kMp3, audio::Container::kFlac, audio::Container::kOggOpus}) {
    content[std::string(audio::content_type(container))] = {{"schema", {{"type", "string"}, {"format", "binary"}}}};
  }
  return content;
}

ordered_json speech_operation(const char* id, const char* summary, const char* schema, bool sse) {
  auto content = audio_content();
  if (sse) content["text/event-stream"] = {{"schema", {{"type", "string"}}}};
  ordered_json responses;
  responses["200"] = {{"description", "Audio"},
                      {"headers",
                       {{"X-Request-Id", {{"schema", {{"type", "string"}}}}},
                        {"X-Seed", {{"schema", {{"type", "string"}}}, {"description", "The seed that was used"}}},
                        {"X-Synthetic-Audio", {{"schema", {{"type", "string"}}}, {"description", "Always true"}}}}},
                      {"content", std::move(content)}};
  responses["400"] = error_reply("A field is wrong; 'param' names it");
  responses["413"] = error_reply("The text or the body exceeds a limit");
  responses["429"] = error_reply("Busy; Retry-After says when to come back");
  responses["500"] = error_reply("Our failure; the message names the request id in the log");
  responses["503"] = error_reply("Not ready or shutting down");
  responses["504"] = error_reply("The deadline passed");
  return {
      {"operationId", id},
      {"summary", summary},
      {"requestBody",
       {{"required", true}, {"content", {{"application/json", {{"schema", {{"$ref", std::string("#/components/schemas/") + schema}}}}}}}}},
      {"responses", std::move(responses)}};
}

ordered_json document_operation(const char* id, const char* summary) {
  return {{"operationId", id}, {"summary", summary}, {"responses", {{"200", json_reply(summary)}}}};
}

}  // namespace

std::string voices_document(const Catalog& catalog) {
  auto voices = ordered_json::array();
  for (const auto& voice : catalog.voices) {
    voices.push_back({{"id", voice.id},
                      {"title", voice.title},
                      {"gender", voice.gender},
                      {"languages", voice.languages},
                      {"model", catalog.model},
                      {"default", voice.id == catalog.default_voice}});
  }
  return ordered_json{{"object", "list"}, {"data", std::move(voices)}}.dump();
}

std::string models_document(const Catalog& catalog) {
  auto models = ordered_json::array({model_entry(catalog.model, catalog)});
  for (const auto& alias : catalog.openai.models) models.push_back(model_entry(alias, catalog));
  return ordered_json{{"object", "list"}, {"data", std::move(models)}}.dump();
}

std::string openapi_document(const Catalog& catalog, const std::vector<Field<SpeechCall>>& native,
                             const std::vector<Field<SpeechCall>>& openai) {
  ordered_json paths;
  paths["/synthesize"]["post"] = speech_operation("synthesize", "Text to one whole audio file", "SpeechRequest", false);
  paths["/synthesize_stream"]["post"] =
      speech_operation("synthesizeStream", "Text to audio, streamed while it is made", "SpeechRequest", false);
  paths["/v1/audio/speech"]["post"] = speech_operation("createSpeech", "OpenAI's speech endpoint, streamed", "OpenAiSpeechRequest", true);
  paths["/v1/voices"]["get"] = document_operation("listVoices", "The voices a request can name");
  paths["/v1/models"]["get"] = document_operation("listModels", "The model that is served and its aliases");

  const ordered_json text{{"type", "string"}};
  const ordered_json error{
      {"type", "object"},
      {"properties",
       {{"error",
         {{"type", "object"},
          {"properties", {{"message", text}, {"type", text}, {"param", {{"type", {"string", "null"}}}}, {"code", text}}},
          {"required", {"message", "type", "param", "code"}}}}}},
      {"required", ordered_json::array({"error"})}};
  const ordered_json document{
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "chattts-server"},
        {"version", catalog.version},
        {"description", "Text to speech, streamed. Model: " + catalog.model_title}}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas",
         {{"SpeechRequest", fields_schema(rules_of(native), false)},
          {"OpenAiSpeechRequest", fields_schema(rules_of(openai), true)},
          {"Error", error}}}}}};
  return document.dump(2);
}

}  // namespace tts::api
