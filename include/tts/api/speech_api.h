#pragma once
// JSON bodies to validated requests, and the documents that describe them. Bodies are hostile until they have passed here.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tts/api/catalog.h"
#include "tts/base/result.h"
#include "tts/synthesis/synthesis.h"

namespace tts::api {

struct SpeechCall {
  synthesis::SynthesisRequest request;   // complete but for request_id, whole and deadline
  std::chrono::milliseconds timeout{0};  // from the body, or Catalog::max_timeout_ms
  bool sse = false;                      // OpenAI's stream_format "sse"
  std::size_t characters = 0;            // code points of the text
  std::vector<std::string> warnings;     // what was ignored, printable ASCII
};

// Immutable after construction, so every call is thread-safe. Every error names the offending field in Error::param.
class SpeechApi {
 public:
  // Throws std::invalid_argument when an alias names a voice that does not exist.
  explicit SpeechApi(Catalog catalog);
  ~SpeechApi();

  Result<SpeechCall> parse_native(std::string_view body) const;  // POST /synthesize and /synthesize_stream: unknown fields are errors
  Result<SpeechCall> parse_openai(std::string_view body) const;  // POST /v1/audio/speech: unknown fields are warnings

  const std::string& voices_json() const noexcept;   // GET /v1/voices
  const std::string& models_json() const noexcept;   // GET /v1/models
  const std::string& openapi_json() const noexcept;  // GET /openapi.json, generated from the tables that parse

  const Catalog& catalog() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace tts::api
