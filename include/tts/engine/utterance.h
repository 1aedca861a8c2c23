#pragma once
// Plain data that describes one utterance to an engine. No tokenizer, no JSON, no torch.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tts::engine {

inline constexpr std::size_t kCodebooks = 4;
using CodeFrame = std::array<std::uint16_t, kCodebooks>;

// What a row generates: audio codes (code head) or refined text tokens (text head, ChatTTS's refine pass).
enum class Stage : std::uint8_t { kCode, kText };

// Which network turns a generated step into mel frames: the Decoder on hidden states (ChatTTS's use_decoder=true)
// or the DVAE decoder on the codes.
enum class MelPath : std::uint8_t { kHidden, kCodes };

// Ranges of sampling values, the same for requests, manifests and engines.
inline constexpr double kMinTemperature = 0.01, kMaxTemperature = 2.0;
inline constexpr double kMinRepetitionPenalty = 0.1, kMaxRepetitionPenalty = 10.0;

// Order of application: temperature, repetition penalty (window 16), top-P, top-K, end-token mask, softmax, draw.
struct SamplingParams {
  std::array<float, kCodebooks> temperature{0.3F, 0.3F, 0.3F, 0.3F};  // kMinTemperature..kMaxTemperature; the text stage uses element 0
  float top_p = 0.7F;               // [0, 1]; 1 = off; never leaves fewer than 3 candidates
  std::uint32_t top_k = 20;         // 0 = off; values below 3 act as 3
  float repetition_penalty = 1.0F;  // kMinRepetitionPenalty..kMaxRepetitionPenalty; 1 = off
  std::uint32_t min_steps = 1;      // the end token cannot be drawn before this many steps
  std::uint32_t max_steps = 2048;   // > 0; generation stops here with StopReason::kMaxSteps
  std::uint64_t seed = 0;           // same seed, prompt and build give the same samples, whatever shares the batch
  bool greedy = false;              // take the most probable token instead of drawing
};

// Speaker embedding as stored (not normalised), `hidden_size` values. Shared because many utterances use one voice.
using SpeakerVector = std::shared_ptr<const std::vector<float>>;

struct UtterancePrompt {
  Stage stage = Stage::kCode;
  MelPath mel_path = MelPath::kHidden;
  std::vector<std::int32_t> tokens;      // complete prompt, control tokens included; never empty
  SpeakerVector speaker;                 // null = no speaker vector
  std::int32_t speaker_token = -1;       // positions holding this id take the normalised speaker vector; -1 = none
  std::int32_t end_token = -1;           // text stage only: the id that ends generation
  std::vector<CodeFrame> audio_prompt;   // codes of a reference recording, appended after `tokens`; may be empty
  std::uint32_t shared_prefix = 0;       // leading tokens that recur with this speaker (voice and style): an engine may keep what it
                                         // computed for them; < tokens.size(); 0 = none. Never changes a sample
};

// Copied into every hand-over so that late output of a slot that was released and reused can be told apart.
struct SlotId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const SlotId&, const SlotId&) = default;
};

enum class StopReason : std::uint8_t { kNone, kEndToken, kMaxSteps, kCancelled, kDeadline, kFailed };

}  // namespace tts::engine
