#include "chattts_front_end.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <stdexcept>

#include "tts/base/utf8.h"

#include "characters.h"
#include "model_file.h"
#include "sentence_splitter.h"
#include "spoken_text.h"

namespace tts::text {
namespace {

constexpr std::string_view kDefaultStyle = "[speed_5]";

// What a user may write. Everything else in brackets is plain text, whatever the tokenizer calls it.
constexpr std::string_view kMarkup[] = {
    "[uv_break]", "[lbreak]",  "[laugh]",   "[laugh_0]", "[laugh_1]", "[laugh_2]", "[break_0]", "[break_1]", "[break_2]",
    "[break_3]",  "[break_4]", "[break_5]", "[break_6]", "[break_7]", "[oral_0]",  "[oral_1]",  "[oral_2]",  "[oral_3]",
    "[oral_4]",   "[oral_5]",  "[oral_6]",  "[oral_7]",  "[oral_8]",  "[oral_9]",  "[speed_0]", "[speed_1]", "[speed_2]",
    "[speed_3]",  "[speed_4]", "[speed_5]", "[speed_6]", "[speed_7]", "[speed_8]", "[speed_9]",
};
constexpr std::size_t kLongestMarkup = std::ranges::max(kMarkup, {}, &std::string_view::size).size();

// Stands for a piece of markup among the units. A user's own U+E000 has no markup at its place.
constexpr char32_t kMarkupUnit = 0xE000;

constexpr std::uint32_t kCostPerToken = 4;  // costs count quarters of a token

std::uint32_t cost_of(char32_t c) { return is_latin(c) ? 1 : is_space(c) ? 0 : kCostPerToken; }

// Before the checkpoint's own clean-up, which would delete all of these and join their neighbours.
char32_t to_pause(char32_t c) {
  if (is_space(c)) return U' ';
  switch (c) {
    case U'?': return U'.';
    case U'？': return U'。';
    case U'[':
    case U']':
    case U'—':
    case U'…': return U',';
    default: return c;
  }
}

Error invalid(std::string message, std::string param) { return {ErrorCode::kInvalidArgument, std::move(message), std::move(param), {}}; }

std::optional<Error> check_text(std::string_view text, const char* param) {
  if (const auto at = find_invalid_utf8(text)) return invalid("the text is not valid UTF-8 at byte " + std::to_string(*at), param);
  if (text.find('\0') != std::string_view::npos) return invalid("the text contains a NUL character", param);
  return std::nullopt;
}

void trim(std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  text = begin == std::string::npos ? std::string() : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::string read_text(const engine::Manifest& manifest, const char* role) {
  const auto found = manifest.files.find(role);
  if (found != manifest.files.end() && found->second.bytes > kMaxTextFileBytes) {
    throw std::runtime_error(found->second.path.string() + " is larger than " + std::to_string(kMaxTextFileBytes) + " bytes");
  }
  const std::vector<std::byte> bytes = read_model_file(manifest, role);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

struct ChatttsFrontEnd::Analysis {
  std::string_view text;
  bool normalize = true;
  ChatttsLanguage language = ChatttsLanguage::kEnglish;
  std::vector<Markup> markup;
  std::vector<SpokenChar> spoken;  // a piece of markup is one kMarkupUnit

  // The markup that this spoken character stands for, or nullptr.
  const Markup* markup_at(const SpokenChar& spoken_char) const {
    if (spoken_char.c != kMarkupUnit) return nullptr;
    const auto found = std::ranges::lower_bound(markup, spoken_char.source.begin, {}, [](const Markup& m) { return m.source.begin; });
    return found != markup.end() && found->source.begin == spoken_char.source.begin ? &*found : nullptr;
  }
};

ChatttsFrontEnd::ChatttsFrontEnd(BertTokenizer tokenizer, Homophones homophones, std::uint32_t text_tokens, std::uint32_t max_prompt_tokens)
    : tokenizer_(std::move(tokenizer)), homophones_(std::move(homophones)), max_prompt_tokens_(max_prompt_tokens) {
  std::string problems;
  const auto need = [&](std::string_view name) {
    const auto id = tokenizer_.special(name);
    if (!id) problems.append("\n  the tokenizer has no ").append(name);
    return id.value_or(0);
  };
  start_ = need("[Stts]");
  end_ = need("[Ptts]");
  speaker_ = need("[spk_emb]");
  no_speaker_ = need("[empty_spk]");
  refine_start_ = need("[Sbreak]");
  refine_prompt_ = need("[Pbreak]");
  refine_end_ = need("[Ebreak]");
  first_break_ = need("[break_0]");
  is_markup_.resize(tokenizer_.size());
  for (const std::string_view name : kMarkup) {
    const TokenId id = need(name);
    markup_.emplace(name, id);
    if (problems.empty()) is_markup_[static_cast<std::size_t>(id)] = true;
  }
  if (tokenizer_.size() > text_tokens) {
    problems.append("\n  the tokenizer has ").append(std::to_string(tokenizer_.size())).append(" tokens, the model ");
    problems.append(std::to_string(text_tokens));
  }
  if (max_prompt_tokens_ != 0 && max_prompt_tokens_ < kMinChatttsPromptTokens) {
    problems.append("\n  max_prompt_tokens must be at least ").append(std::to_string(kMinChatttsPromptTokens));
  }
  if (!problems.empty()) throw std::runtime_error("cannot use this ChatTTS text front end:" + problems);
}

std::vector<ChatttsFrontEnd::Markup> ChatttsFrontEnd::find_markup(std::string_view text) const {
  std::vector<Markup> found;
  for (std::size_t at = 0; (at = text.find('[', at)) != std::string_view::npos;) {
    const auto close = text.substr(at, kLongestMarkup).find(']');
    const auto known = close == std::string_view::npos ? markup_.end() : markup_.find(text.substr(at, close + 1));
    if (known == markup_.end()) {
      ++at;
      continue;
    }
    found.push_back({{at, at + close + 1}, known->second});
    at += close + 1;
  }
  return found;
}

Result<std::vector<TokenId>> ChatttsFrontEnd::parse_prompt(std::string_view prompt, const char* param) const {
  std::vector<TokenId> ids;
  std::size_t at = 0;
  for (const Markup& markup : find_markup(prompt)) {
    if (markup.source.begin != at) break;
    ids.push_back(markup.id);
    at = markup.source.end;
  }
  if (at != prompt.size())
    return invalid(std::string(param) + " takes only markup such as [speed_5], [oral_2], [laugh_0] and [break_6]", param);
  if (ids.size() > kMaxPromptMarkup) {
    return Error{
        ErrorCode::kTooLarge, std::string(param) + " takes at most " + std::to_string(kMaxPromptMarkup) + " pieces of markup", param, {}};
  }
  return ids;
}

void ChatttsFrontEnd::encode_with_markup(std::string_view text, std::vector<TokenId>& out) const {
  std::size_t at = 0;
  for (const Markup& markup : find_markup(text)) {
    tokenizer_.encode_ordinary(text.substr(at, markup.source.begin - at), out);
    out.push_back(markup.id);
    at = markup.source.end;
  }
  tokenizer_.encode_ordinary(text.substr(at), out);
}

ChatttsFrontEnd::Analysis ChatttsFrontEnd::analyse(std::string_view text, const TextOptions& options) const {
  Analysis analysis{text, options.normalize, ChatttsLanguage::kEnglish, find_markup(text), {}};
  std::vector<Unit> units;
  std::u32string plain;
  auto next = analysis.markup.begin();
  for (const Unit& unit : fold_text(text)) {
    if (next != analysis.markup.end() && unit.source.begin >= next->source.end) ++next;
    if (next == analysis.markup.end() || unit.source.begin < next->source.begin) {
      units.push_back(unit);
      plain.push_back(unit.c);
    } else if (unit.source.begin == next->source.begin) {
      units.push_back({kMarkupUnit, next->source});
      plain.push_back(U' ');
    }
  }
  SpokenOptions spoken_options{std::nullopt, options.normalize};
  if (options.language == "zh") spoken_options.language = Language::kChinese;
  if (options.language == "en") spoken_options.language = Language::kEnglish;
  analysis.language = options.language == "zh"   ? ChatttsLanguage::kChinese
                      : options.language == "en" ? ChatttsLanguage::kEnglish
                                                 : detect_chattts_language(plain);
  analysis.spoken = spell_out(units, find_breaks(units), spoken_options);
  return analysis;
}

// Ends of the utterances, in spoken characters.
std::vector<std::size_t> ChatttsFrontEnd::group(const Analysis& analysis, bool split) const {
  const std::vector<SpokenChar>& spoken = analysis.spoken;
  if (!split) return {spoken.size()};
  std::vector<Atom> atoms;
  std::vector<std::size_t> ends;
  std::uint32_t cost = 0;
  for (std::size_t i = 0; i < spoken.size(); ++i) {
    cost += cost_of(spoken[i].c);
    const bool shares_source = i + 1 < spoken.size() && spoken[i + 1].source.begin < spoken[i].source.end;
    if (shares_source) continue;
    atoms.push_back({cost, spoken[i].after});
    ends.push_back(i + 1);
    cost = 0;
  }
  std::vector<std::size_t> groups = group_atoms(atoms, {kMinChatttsUtterance * kCostPerToken, kMaxChatttsUtterance * kCostPerToken});
  for (std::size_t& end : groups) end = ends[end - 1];
  return groups;
}

void ChatttsFrontEnd::append_normalised(const Analysis& analysis, std::u32string_view text, PreparedUtterance& out) const {
  std::u32string readable;
  for (const char32_t c : text) {
    const char32_t pause = to_pause(c);
    const bool repeated = pause != c && !readable.empty() && readable.back() == pause;
    if (!repeated) readable.push_back(pause);
  }
  const std::string normal = encode_utf8(
      normalize_chattts(readable, analysis.language, {.marks = true, .homophones = homophones_.empty() ? nullptr : &homophones_}));
  out.spoken += normal;
  tokenizer_.encode_ordinary(normal, out.tokens);
}

// Appends the text of spoken characters [begin, end) to the opened prompt. False when there is nothing to say in it.
bool ChatttsFrontEnd::append_utterance(const Analysis& analysis, std::size_t begin, std::size_t end, PreparedUtterance& out) const {
  const std::vector<SpokenChar>& spoken = analysis.spoken;
  while (begin < end && is_space(spoken[begin].c)) ++begin;
  while (end > begin && is_space(spoken[end - 1].c)) --end;
  if (begin == end) return false;
  out.source = {spoken[begin].source.begin, spoken[end - 1].source.end};
  const std::size_t opened = out.tokens.size();
  if (analysis.normalize) {
    std::u32string run;
    for (std::size_t i = begin; i < end; ++i) {
      const Markup* markup = analysis.markup_at(spoken[i]);
      if (!markup) {
        run.push_back(spoken[i].c);
        continue;
      }
      append_normalised(analysis, std::exchange(run, {}), out);
      out.spoken.append(analysis.text.substr(markup->source.begin, markup->source.end - markup->source.begin));
      out.tokens.push_back(markup->id);
    }
    append_normalised(analysis, run, out);
    trim(out.spoken);
  } else {
    out.spoken = analysis.text.substr(out.source.begin, out.source.end - out.source.begin);
    encode_with_markup(out.spoken, out.tokens);
  }
  return is_speakable(std::span(out.tokens).subspan(opened));
}

Result<PreparedText> ChatttsFrontEnd::prepare(std::string_view text, const TextOptions& options) const {
  if (auto error = check_text(text, "text")) return *std::move(error);
  const auto style = parse_prompt(options.style_prompt.empty() ? kDefaultStyle : options.style_prompt, "style_prompt");
  if (!style) return style.error();
  const Analysis analysis = analyse(text, options);
  PreparedText out;
  std::size_t begin = 0;
  for (const std::size_t end : group(analysis, options.split)) {
    PreparedUtterance utterance;
    open_code_prompt(options.has_speaker, *style, utterance);
    if (append_utterance(analysis, begin, end, utterance)) {
      utterance.tokens.push_back(end_);
      assert(is_code_prompt(utterance.tokens));
      if (auto error = too_long(utterance.tokens.size())) return *std::move(error);
      out.utterances.push_back(std::move(utterance));
    }
    begin = end;
  }
  if (out.utterances.empty()) return invalid("nothing in the text can be spoken", "text");
  if (!options.normalize) return out;
  std::set<std::string, std::less<>> once;
  for (const SpokenChar& spoken : analysis.spoken) {
    if (!carries_meaning(spoken.c) || passes_chattts_normalizer(spoken.c) || analysis.markup_at(spoken)) continue;
    std::string written(text.substr(spoken.source.begin, spoken.source.end - spoken.source.begin));
    if (once.insert(written).second) out.dropped.push_back(std::move(written));
  }
  return out;
}

Result<std::vector<TokenId>> ChatttsFrontEnd::prepare_refine(std::string_view text, std::string_view prompt) const {
  if (auto error = check_text(text, "text")) return *std::move(error);
  const auto markup = parse_prompt(prompt, "refine_prompt");
  if (!markup) return markup.error();
  std::vector<TokenId> tokens{refine_start_};
  encode_with_markup(text, tokens);
  if (!is_speakable(tokens)) return invalid("nothing in the text can be spoken", "text");
  tokens.push_back(refine_prompt_);
  tokens.insert(tokens.end(), markup->begin(), markup->end());
  if (auto error = too_long(tokens.size())) return *std::move(error);
  return tokens;
}

Result<PreparedUtterance> ChatttsFrontEnd::prepare_refined(std::span<const TokenId> refined, const TextOptions& options) const {
  const auto style = parse_prompt(options.style_prompt.empty() ? kDefaultStyle : options.style_prompt, "style_prompt");
  if (!style) return style.error();
  std::vector<TokenId> kept;
  std::ranges::copy_if(refined, std::back_inserter(kept), [this](TokenId id) {
    return id >= 0 && id < first_break_ && (!tokenizer_.is_special(id) || is_markup_[static_cast<std::size_t>(id)]);
  });
  PreparedUtterance out;
  out.spoken = tokenizer_.decode(kept);
  open_code_prompt(options.has_speaker, *style, out);
  const std::size_t opened = out.tokens.size();
  encode_with_markup(out.spoken, out.tokens);
  if (!is_speakable(std::span(out.tokens).subspan(opened))) {
    return Error{ErrorCode::kEngineFailure, "the refinement left nothing to say", "", {}};
  }
  out.tokens.push_back(end_);
  assert(is_code_prompt(out.tokens));
  if (auto error = too_long(out.tokens.size())) return *std::move(error);
  return out;
}

void ChatttsFrontEnd::open_code_prompt(bool has_speaker, std::span<const TokenId> style, PreparedUtterance& out) const {
  out.tokens = {start_, has_speaker ? speaker_ : no_speaker_};
  out.tokens.insert(out.tokens.end(), style.begin(), style.end());
  out.shared_prefix = static_cast<std::uint32_t>(out.tokens.size());
}

bool ChatttsFrontEnd::is_speakable(std::span<const TokenId> tokens) const {
  return std::ranges::any_of(tokens, [this](TokenId id) { return tokenizer_.is_speakable(id); });
}

std::optional<Error> ChatttsFrontEnd::too_long(std::size_t tokens) const {
  if (max_prompt_tokens_ == 0 || tokens <= max_prompt_tokens_) return std::nullopt;
  return Error{ErrorCode::kTooLarge,
               "the text needs " + std::to_string(tokens) + " tokens in one utterance, the limit is " + std::to_string(max_prompt_tokens_) +
                   "; let it be split into sentences",
               "text",
               {}};
}

// One speaker slot, at its place, and no control token that a user could have brought in.
bool ChatttsFrontEnd::is_code_prompt(std::span<const TokenId> tokens) const {
  if (tokens.size() < 3 || tokens.front() != start_ || tokens.back() != end_) return false;
  if (tokens[1] != speaker_ && tokens[1] != no_speaker_) return false;
  return std::ranges::all_of(tokens.subspan(2, tokens.size() - 3), [this](TokenId id) {
    return !tokenizer_.is_special(id) || id == tokenizer_.unknown() || is_markup_[static_cast<std::size_t>(id)];
  });
}

std::unique_ptr<FrontEnd> load_chattts_front_end(const engine::Manifest& manifest) {
  BertTokenizer tokenizer(read_text(manifest, "tokenizer"), read_text(manifest, "tokenizer_config"));
  Homophones homophones;
  if (manifest.files.contains("homophones")) homophones = parse_homophones(read_text(manifest, "homophones"));
  return std::make_unique<ChatttsFrontEnd>(std::move(tokenizer), std::move(homophones), manifest.architecture.gpt.num_text_tokens,
                                           manifest.max_prompt_tokens);
}

}  // namespace tts::text
