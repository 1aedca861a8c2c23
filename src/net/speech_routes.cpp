#include "speech_routes.h"

#include <cassert>
#include <memory>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "tts/api/errors.h"
#include "tts/audio/format.h"

namespace tts::net {
namespace {

using api::SpeechCall;
using synthesis::Synthesis;

enum class Delivery { kWhole, kStream };

std::string_view as_text(const std::vector<std::uint8_t>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
std::span<const std::uint8_t> as_bytes(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

HeaderList audio_headers(const SpeechCall& call, std::uint64_t seed) {
  HeaderList headers{{"X-Synthetic-Audio", "true"}, {"X-Seed", std::to_string(seed)}};
  const auto& format = call.request.format;
  if (format.container == audio::Container::kPcm && !call.sse) {
    headers.emplace_back("X-Sample-Rate", std::to_string(format.sample_rate));
    headers.emplace_back("X-Channels", "1");
    headers.emplace_back("X-Bit-Depth", "16");
  }
  for (const auto& warning : call.warnings) headers.emplace_back("Warning", "299 - \"" + warning + "\"");
  return headers;
}

struct NextPacket {
  enum class Kind { kPacket, kEnd, kFailed, kGone } kind = Kind::kEnd;
  std::shared_ptr<const resume::Packet> packet;
  Error error;
};

Awaitable<NextPacket> next_packet(Connection& connection, resume::StreamLog& log, std::uint32_t seq) {
  if (auto packet = log.next(seq)) co_return NextPacket{.kind = NextPacket::Kind::kPacket, .packet = std::move(packet), .error = {}};
  if (!co_await connection.wait_for(log, seq)) {
    if (connection.peer_gone()) co_return NextPacket{.kind = NextPacket::Kind::kGone, .packet = {}, .error = {}};
    Error late{.code = ErrorCode::kDeadlineExceeded, .message = "the audio was not ready in time", .param = {}, .retry_after = {}};
    co_return NextPacket{.kind = NextPacket::Kind::kFailed, .packet = {}, .error = std::move(late)};
  }
  if (auto packet = log.next(seq)) co_return NextPacket{.kind = NextPacket::Kind::kPacket, .packet = std::move(packet), .error = {}};
  if (auto error = log.error()) co_return NextPacket{.kind = NextPacket::Kind::kFailed, .packet = {}, .error = std::move(*error)};
  co_return NextPacket{};
}

class Speech {
 public:
  Speech(Exchange& exchange, SpeechCall& call) : exchange_(exchange), call_(call) {}

  Awaitable<void> deliver(Synthesis& synthesis, Delivery delivery) {
    auto& log = synthesis.log();
    exchange_.connection.limit_waits(call_.timeout + exchange_.options().deadline_grace);
    auto first = co_await next_packet(exchange_.connection, log, 1);
    switch (first.kind) {
      case NextPacket::Kind::kGone: left(); co_return;
      case NextPacket::Kind::kFailed: co_await exchange_.reply_error(first.error); co_return;
      case NextPacket::Kind::kEnd: {
        const Error silent{.code = ErrorCode::kInternal, .message = "the synthesis ended without audio", .param = {}, .retry_after = {}};
        co_await exchange_.reply_error(silent);
        co_return;
      }
      case NextPacket::Kind::kPacket: break;
    }
    if (delivery == Delivery::kWhole) {
      co_await deliver_whole(synthesis, std::move(first.packet));
    } else {
      co_await deliver_stream(synthesis, std::move(first.packet));
    }
  }

 private:
  // The reply waits for the end behind the one packet: letting go any earlier would count as the client's leaving.
  Awaitable<void> deliver_whole(Synthesis& synthesis, std::shared_ptr<const resume::Packet> packet) {
    const auto end = co_await next_packet(exchange_.connection, synthesis.log(), 2);
    if (end.kind == NextPacket::Kind::kGone) {
      left();
    } else if (end.kind == NextPacket::Kind::kFailed) {
      co_await exchange_.reply_error(end.error);
    } else {
      assert(end.kind == NextPacket::Kind::kEnd);
      co_await exchange_.reply(200, audio::content_type(call_.request.format.container), as_text(packet->bytes),
                               audio_headers(call_, synthesis.seed()));
    }
  }

  Awaitable<void> deliver_stream(Synthesis& synthesis, std::shared_ptr<const resume::Packet> packet) {
    auto& connection = exchange_.connection;
    auto& log = synthesis.log();
    const auto type = call_.sse ? std::string_view("text/event-stream") : audio::content_type(call_.request.format.container);
    auto headers = audio_headers(call_, synthesis.seed());
    headers.emplace_back("X-Accel-Buffering", "no");
    for (std::uint32_t seq = 1;; ++seq) {
      const std::string event = call_.sse ? api::sse_audio_delta(as_text(packet->bytes)) : std::string();
      const auto bytes = call_.sse ? as_bytes(event) : std::span<const std::uint8_t>(packet->bytes);
      const bool sent =
          seq == 1 ? co_await exchange_.begin_stream(type, std::move(headers), bytes) : co_await connection.write_stream(bytes);
      if (!sent) {
        left();
        co_return;
      }
      log.acknowledge(seq);
      auto next = co_await next_packet(connection, log, seq + 1);
      if (next.kind == NextPacket::Kind::kPacket) {
        packet = std::move(next.packet);
        continue;
      }
      if (next.kind == NextPacket::Kind::kEnd) {
        co_await finish(synthesis);
      } else if (next.kind == NextPacket::Kind::kGone) {
        left();
      } else {
        co_await break_off(next.error);
      }
      co_return;
    }
  }

  Awaitable<void> finish(Synthesis& synthesis) {
    auto& connection = exchange_.connection;
    if (call_.sse) {
      const auto event = api::sse_audio_done(call_.characters, synthesis.report().steps);
      co_await connection.write_stream(as_bytes(event));
    }
    if (!co_await connection.end_stream()) left();
  }

  // The status line has gone out. Without the final chunk the client sees that the audio is cut short.
  Awaitable<void> break_off(const Error& error) {
    spdlog::error("request {}: the stream broke off: {}: {}", exchange_.request.request_id, to_string(error.code), error.message);
    exchange_.status = api::http_status(error.code);
    if (call_.sse) {
      const auto event = api::sse_error(error, exchange_.request.request_id);
      co_await exchange_.connection.write_stream(as_bytes(event));
    }
    exchange_.connection.wire().close();
  }

  void left() { exchange_.status = 499; }

  Exchange& exchange_;
  SpeechCall& call_;
};

Awaitable<void> speak(const ServerParts& parts, Exchange& exchange, bool openai, Delivery delivery) {
  if (parts.readiness.draining()) {
    const Error draining{.code = ErrorCode::kUnavailable, .message = "the server is shutting down", .param = {}, .retry_after = {}};
    parts.metrics.rejected("draining");
    co_await exchange.reply_error(draining);
    co_return;
  }
  auto parsed = openai ? parts.api.parse_openai(exchange.request.body) : parts.api.parse_native(exchange.request.body);
  if (!parsed) {
    parts.metrics.rejected(parsed.error().code == ErrorCode::kTooLarge ? "too_large" : "invalid");
    co_await exchange.reply_error(parsed.error());
    co_return;
  }
  auto& call = *parsed;
  call.request.request_id = exchange.request.request_id;
  call.request.whole = delivery == Delivery::kWhole;
  call.request.deadline = parts.clock.now() + call.timeout;
  auto started = parts.start(call.request);
  if (!started) {
    co_await exchange.reply_error(started.error());  // the service has counted it
    co_return;
  }
  const auto synthesis = std::move(*started);  // its end, however this ends, cancels what still runs
  Speech speech(exchange, call);
  co_await speech.deliver(*synthesis, delivery);
}

}  // namespace

std::vector<Route> speech_routes(const ServerParts& parts) {
  return {{"POST", "/synthesize", [&parts](Exchange& exchange) { return speak(parts, exchange, false, Delivery::kWhole); }},
          {"POST", "/synthesize_stream", [&parts](Exchange& exchange) { return speak(parts, exchange, false, Delivery::kStream); }},
          {"POST", "/v1/audio/speech", [&parts](Exchange& exchange) { return speak(parts, exchange, true, Delivery::kStream); }}};
}

}  // namespace tts::net
