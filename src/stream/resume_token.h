#pragma once
// Proof that a client is the one that a session belongs to.

#include <string>
#include <string_view>

namespace tts::stream {

// 128 random bits as 32 lower-case hexadecimal digits, from the operating system.
std::string random_id();

// What the server keeps of a token: whoever reads its memory cannot take sessions over with it.
class TokenHash {
 public:
  explicit TokenHash(std::string_view token);

  bool matches(std::string_view token) const;  // in a time that does not depend on where they differ

 private:
  std::string hash_;
};

}  // namespace tts::stream
