#include "head_guard.h"

#include <algorithm>

namespace tts::net {
namespace {

constexpr std::size_t kMaxFields = 100;
constexpr std::size_t kMaxLengthDigits = 18;  // fits 64 bits

bool is_token_char(char c) {
  constexpr std::string_view kSymbols = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kSymbols.find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char); }
bool is_target_char(char c) { return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7F; }
bool is_value_char(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

HeadProblem bad(std::string message) { return {.status = 400, .message = std::move(message)}; }

struct FramingFields {
  std::size_t hosts = 0, lengths = 0, encodings = 0;
  std::string_view length, encoding;
};

std::optional<HeadProblem> check_request_line(std::string_view line, bool& http10) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return bad("the request line is malformed");
  const auto target = line.substr(first + 1, last - first - 1);
  const auto version = line.substr(last + 1);
  if (!is_token(line.substr(0, first))) return bad("the request method is malformed");
  if (target.empty() || !std::all_of(target.begin(), target.end(), is_target_char)) return bad("the request target is malformed");
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) || version[6] != '.' || !is_digit(version[7])) {
    return bad("the HTTP version is malformed");
  }
  http10 = version == "HTTP/1.0";
  if (!http10 && version != "HTTP/1.1") return HeadProblem{.status = 505, .message = "this server speaks HTTP/1.1"};
  return std::nullopt;
}

std::optional<HeadProblem> check_field(std::string_view line, FramingFields& framing) {
  if (line.front() == ' ' || line.front() == '\t') return bad("folded header lines are not accepted");
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return bad("a header name is malformed");
  const auto value = trim(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), is_value_char)) return bad("a header value holds a control character");
  const auto name = lower(line.substr(0, colon));
  if (name == "host") {
    ++framing.hosts;
  } else if (name == "content-length") {
    ++framing.lengths;
    framing.length = value;
  } else if (name == "transfer-encoding") {
    ++framing.encodings;
    framing.encoding = value;
  } else if (name == "content-encoding" && lower(value) != "identity") {
    return HeadProblem{.status = 415, .message = "compressed bodies are not accepted; send the body as it is, without Content-Encoding"};
  }
  return std::nullopt;
}

std::optional<HeadProblem> check_framing(const FramingFields& framing, bool http10) {
  if (framing.hosts > 1) return bad("more than one Host header");
  if (framing.hosts == 0 && !http10) return bad("the Host header is missing");
  if (framing.lengths > 1) return bad("more than one Content-Length header");
  if (framing.encodings > 0 && framing.lengths > 0) return bad("Content-Length and Transfer-Encoding exclude each other");
  if (framing.encodings > 0 && http10) return bad("HTTP/1.0 has no Transfer-Encoding");
  if (framing.encodings > 1 || (framing.encodings == 1 && lower(framing.encoding) != "chunked"))
    return bad("the only Transfer-Encoding accepted is chunked");
  if (framing.lengths == 1 && (framing.length.empty() || framing.length.size() > kMaxLengthDigits ||
                               !std::all_of(framing.length.begin(), framing.length.end(), is_digit))) {
    return bad("Content-Length must be a plain decimal number");
  }
  return std::nullopt;
}

}  // namespace

std::optional<HeadProblem> find_head_problem(std::string_view head) {
  FramingFields framing;
  bool http10 = false;
  std::size_t lines = 0;
  while (!head.empty()) {
    const auto end = head.find('\n');
    if (end == std::string_view::npos || end == 0 || head[end - 1] != '\r') return bad("lines must end with CRLF");
    const auto line = head.substr(0, end - 1);
    head.remove_prefix(end + 1);
    if (line.find('\r') != std::string_view::npos) return bad("a carriage return stands inside a line");
    if (line.empty()) {
      if (lines == 0) return bad("the request line is missing");
      return check_framing(framing, http10);
    }
    auto problem = lines == 0 ? check_request_line(line, http10) : check_field(line, framing);
    if (problem) return problem;
    if (++lines > kMaxFields + 1) return HeadProblem{.status = 431, .message = "more than " + std::to_string(kMaxFields) + " headers"};
  }
  return bad("the head does not end");
}

}  // namespace tts::net
