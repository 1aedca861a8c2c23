// Whatever bytes a client sends: either a message that keeps its promises comes out, or an error that can be told to the client.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include <nlohmann/json.hpp>

#include "tts/api/stream_messages.h"
#include "tts/base/utf8.h"

namespace {

using namespace tts;  // NOLINT: a program of one file

api::Catalog catalog() {
  api::Catalog catalog;
  catalog.voices = {{"mei", "Mei", "female", {"zh"}}, {"tom", "Tom", "male", {"en"}}};
  catalog.default_voice = "mei";
  catalog.max_text_chars = 1000;
  return catalog;
}

void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

void check_context(const std::string& name) {
  require(!name.empty() && name.size() <= 64, "a context has 1 to 64 bytes");
  require(!find_invalid_utf8(name), "a context is UTF-8");
  for (const char32_t c : decode_utf8(name)) require(c >= 0x20 && (c < 0x7F || c >= 0xA0), "a context has no control characters");
}

void check_voice(const std::string& voice) { require(voice == "mei" || voice == "tom", "a voice exists"); }

void check_speed(double speed) { require(speed >= 0.5 && speed <= 2.0, "speed is in its range"); }

void check_sampling(const synthesis::SamplingOverrides& sampling) {
  require(!sampling.temperature || (*sampling.temperature > 0.0F && *sampling.temperature <= 2.0F), "temperature is in its range");
  require(!sampling.top_p || (*sampling.top_p >= 0.0F && *sampling.top_p <= 1.0F), "top_p is in its range");
  require(!sampling.top_k || *sampling.top_k <= 1000, "top_k is in its range");
  require(!sampling.repetition_penalty || (*sampling.repetition_penalty > 0.0F && *sampling.repetition_penalty <= 10.0F),
          "repetition_penalty is in its range");
  require(!sampling.min_steps && !sampling.max_steps, "steps cannot be chosen");
}

void check(const api::StreamStart& start) {
  check_context(start.context);
  const auto& request = start.request;
  check_voice(request.voice);
  check_speed(request.speed);
  check_sampling(request.sampling);
  require(request.incremental && request.text.empty(), "a start is incremental");
  require(request.max_buffer_delay.count() >= 0 && request.max_buffer_delay.count() <= 10'000, "the delay is in its range");
  require(request.text_options.language.empty() || request.text_options.language == "zh" || request.text_options.language == "en",
          "the language is known");
  const auto& format = request.format;
  const auto rate = format.sample_rate;
  require(rate == 8000 || rate == 16000 || rate == 24000 || rate == 48000, "the rate is known");
  const bool opus = format.container == audio::Container::kOpusPackets || format.container == audio::Container::kOggOpus;
  const bool law = format.container == audio::Container::kMulaw || format.container == audio::Container::kAlaw;
  require(opus || law || format.container == audio::Container::kPcm, "the format is of the protocol");
  require(!law || rate == 8000, "the laws have one rate");
  require(opus ? format.bitrate >= 16'000 && format.bitrate <= 64'000 : format.bitrate == 0, "the bitrate is in its range");
  require(opus || !start.adaptive_bitrate, "only Opus has bitrates");
}

void check(const api::StreamText& text) {
  check_context(text.context);
  require(!text.text.empty() || text.flush, "text is not empty without flush");
  require(!find_invalid_utf8(text.text) && text.text.find('\0') == std::string::npos, "text is UTF-8 without NUL");
  require(count_code_points(text.text) <= 1000, "text is within the limit");
}

void check(const api::StreamFlush& flush) { check_context(flush.context); }
void check(const api::StreamEnd& end) { check_context(end.context); }
void check(const api::StreamCancel& cancel) { check_context(cancel.context); }

void check(const api::StreamUpdate& update) {
  check_context(update.context);
  if (update.change.voice) check_voice(*update.change.voice);
  if (update.change.speed) check_speed(*update.change.speed);
  check_sampling(update.change.sampling);
}

void check(const api::StreamAck& ack) {
  if (ack.context) check_context(*ack.context);
  require(!ack.buffered_ms || *ack.buffered_ms <= 86'400'000, "a buffer is in its range");
}

void check(const api::StreamResume& resume) {
  require(!resume.session.empty() && resume.session.size() <= 128, "a session's name is in its range");
  require(!resume.token.empty() && resume.token.size() <= 128, "a token is in its range");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const api::StreamApi stream(catalog());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto message = stream.parse(text);
  if (message) {
    std::visit([](const auto& one) { check(one); }, *message);
    require(text.size() <= api::kMaxStreamMessageBytes, "messages have a limit");
  } else {
    const auto& error = message.error();
    require(error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kTooLarge, "an error says that the message is wrong");
    require(!error.message.empty() && error.message.size() < 1000, "an error says something, and not too much");
    require(error.param.size() <= 64, "a field's name is short");
    const auto context = stream.context_of(text);
    if (!context.empty()) check_context(context);
    const auto told = api::stream_error_message(
        {.code = api::wrong_message_code(error), .error = error, .context = context, .ended = false, .request_id = {}});
    require(nlohmann::json::accept(told), "an error can be told");
  }
  return 0;
}
