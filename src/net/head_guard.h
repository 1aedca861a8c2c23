#pragma once
// Refuses request heads whose framing two parsers could read differently (request smuggling), before anything else looks at them.
// RFC 9112; stricter than it wherever it offers leniency.

#include <optional>
#include <string>
#include <string_view>

namespace tts::net {

struct HeadProblem {
  int status = 400;
  std::string message;
};

// `head` runs from the request line through the empty line. nullopt = sound: one HTTP/1.0 or 1.1 request line, CRLF line ends only,
// well-formed field lines without folding, at most one Host and Content-Length, Transfer-Encoding only as exactly "chunked"
// on HTTP/1.1 and never together with Content-Length, no Content-Encoding but identity (415).
std::optional<HeadProblem> find_head_problem(std::string_view head);

}  // namespace tts::net
