#pragma once
// The reference's way to cut and decorate text, string by string. Serving never uses it, because a string cannot tell a control token that
// we wrote from one that a user typed; it is what parity with recorded results is measured with.

#include <string>
#include <string_view>
#include <vector>

namespace tts::text {

// At line feeds if there are any (empty parts stay), else after 。 and after a full stop with one white space (empty parts go).
// Precondition: valid UTF-8.
std::vector<std::string> split_like_reference(std::string_view text);

struct CodeDecoration {
  std::string_view prompt;      // e.g. "[speed_5]"
  std::string_view transcript;  // of the reference audio, or nothing
  bool has_speaker = false;
};

// "[Stts][spk_emb]" transcript prompt text "[Ptts]", with the text stripped of white space and of what could be taken for a slot.
std::string decorate_code_like_reference(std::string_view text, const CodeDecoration& decoration);

// "[Sbreak]" text "[Pbreak]" prompt.
std::string decorate_refine_like_reference(std::string_view text, std::string_view prompt);

}  // namespace tts::text
