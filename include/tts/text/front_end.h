#pragma once
// Text as a person typed it to prompts an engine can speak.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tts/base/result.h"
#include "tts/engine/manifest.h"

namespace tts::text {

// Bytes of the caller's UTF-8 text, half-open.
struct SourceRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct TextOptions {
  bool has_speaker = true;     // whether a speaker vector will be given with the prompt
  std::string language{};      // "", "zh" or "en"; empty = detect
  std::string style_prompt{};  // chattts only: markup before the text, e.g. "[speed_5]"; empty = the model's default
  bool normalize = true;       // spoken forms for numbers and the like
  bool split = true;           // cut into sentences; false = one utterance
};

// One sentence ready for submission. Ranges of consecutive utterances are ordered and do not overlap.
struct PreparedUtterance {
  std::vector<std::int32_t> tokens;  // complete prompt; control tokens were assigned by id, never parsed from user text
  SourceRange source;
  std::string spoken;               // what will be said, as text
  std::uint32_t shared_prefix = 0;  // leading tokens that depend on the voice and the style, not on the text
};

struct PreparedText {
  std::vector<PreparedUtterance> utterances;  // never empty on success
  std::vector<std::string> dropped;           // characters that have no reading and will not be spoken, each once
};

// Immutable after construction, so every call is thread-safe. Linear in the length of the text.
class FrontEnd {
 public:
  virtual ~FrontEnd() = default;

  // kInvalidArgument for invalid UTF-8, NUL, or text with nothing that can be spoken.
  virtual Result<PreparedText> prepare(std::string_view text, const TextOptions& options) const = 0;

  // Ids that engine::UtterancePrompt needs.
  virtual std::int32_t speaker_token() const noexcept = 0;

  // Refine pass (chattts models): kUnsupported for front ends without one. `text` is PreparedUtterance::spoken and is not normalised again.
  // prepare_refined leaves `source` empty; kEngineFailure when the model left nothing to say.
  virtual bool has_refine() const noexcept = 0;
  virtual Result<std::vector<std::int32_t>> prepare_refine(std::string_view text, std::string_view prompt) const = 0;
  virtual std::int32_t refine_end_token() const noexcept = 0;
  virtual Result<PreparedUtterance> prepare_refined(std::span<const std::int32_t> refined, const TextOptions& options) const = 0;
};

// Reads the files the manifest names for its front end, checking their hashes. Blocks. Throws std::runtime_error.
std::unique_ptr<FrontEnd> load_front_end(const engine::Manifest& manifest);

}  // namespace tts::text
