#include "head_guard.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tts::net {
namespace {

using namespace std::string_literals;

TEST(HeadGuard, SoundHeadsPass) {
  const std::vector<std::string> table{
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET / HTTP/1.0\r\n\r\n",
      "POST /x?y=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
      "POST /x HTTP/1.1\r\nhOsT: a\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \tCHUNKED \r\n\r\n",
      "GET / HTTP/1.1\r\nHost:\r\nX-Empty:\r\nX-Utf8: \xE4\xBD\xA0\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
  };
  for (const auto& head : table) {
    const auto problem = find_head_problem(head);
    EXPECT_FALSE(problem) << head << (problem ? problem->message : "");
  }
}

TEST(HeadGuard, AmbiguousHeadsAreRefused) {
  const std::vector<std::pair<std::string, int>> table{
      {"", 400},
      {"\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n", 400},            // does not end
      {"GET / HTTP/1.1\nHost: a\n\n", 400},              // bare LF
      {"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},  // one bare LF
      {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400},  // bare CR
      {"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400},       // two spaces
      {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},       // tab
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},       // trailing space
      {"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400},    // control in target
      {"GET /\xFF HTTP/1.1\r\nHost: a\r\n\r\n", 400},    // raw high byte in target
      {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},        // method is no token
      {"GET HTTP/1.1\r\nHost: a\r\n\r\n", 400},          // no target
      {"GET / http/1.1\r\nHost: a\r\n\r\n", 400},        // case
      {"GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400},       // long version
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},                        // no Host
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},  // two Hosts
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},            // space before colon
      {"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400},      // empty name
      {"GET / HTTP/1.1\r\nHost: a\r\nNoColon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400},                               // obs-fold
      {"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n", 400},                              // obs-fold
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},                                            // fold at once
      {"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"s, 400},                                 // NUL
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},  // even when equal
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0B"
       "chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", 400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\n\r\n", 415},
  };
  for (const auto& [head, status] : table) {
    const auto problem = find_head_problem(head);
    ASSERT_TRUE(problem) << head;
    EXPECT_EQ(problem->status, status) << head;
    EXPECT_FALSE(problem->message.empty());
  }
}

TEST(HeadGuard, NumberOfHeadersIsLimited) {
  const auto head = [](int count) {
    std::string text = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (int i = 1; i < count; ++i) text += "X: b\r\n";
    return text + "\r\n";
  };
  EXPECT_FALSE(find_head_problem(head(100)));
  ASSERT_TRUE(find_head_problem(head(101)));
  EXPECT_EQ(find_head_problem(head(101))->status, 431);
}

}  // namespace
}  // namespace tts::net
