#include "phones_front_end.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "tts/base/utf8.h"

#include "model_file.h"

namespace tts::text {
namespace {

struct MarkSymbol {
  char32_t mark;
  std::string_view symbol;
};
constexpr MarkSymbol kMarks[] = {{U'，', ","}, {U'、', ","}, {U',', ","},  {U'。', "."}, {U'.', "."},
                                 {U'？', "?"}, {U'?', "?"},  {U'！', "!"}, {U'!', "!"},  {U'；', ";"},
                                 {U';', ";"},  {U'：', ":"}, {U':', ":"},  {U'—', "—"},  {U'…', "…"}};

std::string_view mark_symbol(char32_t c) {
  const auto* found = std::ranges::find(kMarks, c, &MarkSymbol::mark);
  return found == std::end(kMarks) ? std::string_view{} : found->symbol;
}

bool is_apostrophe(char32_t c) { return c == U'\'' || c == U'’'; }

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), "text", {}}; }

std::string collapsed(std::u32string_view text) {
  std::string out;
  bool gap = false;
  for (const char32_t c : text) {
    if (is_space(c)) {
      gap = !out.empty();
      continue;
    }
    if (gap) out += ' ';
    gap = false;
    append_utf8(out, c);
  }
  return out;
}

}  // namespace

struct PhonesFrontEnd::Piece {
  std::size_t first_symbol = 0, symbols = 0;
  std::size_t begin = 0, end = 0;  // spoken characters
  bool mark = false;
};

struct PhonesFrontEnd::Sentence {
  std::size_t first_piece = 0, end_piece = 0;
  std::size_t begin = 0, end = 0;  // spoken characters
};

struct PhonesFrontEnd::Analysis {
  std::string_view text;
  std::vector<SpokenChar> spoken;
  std::vector<Piece> pieces;
  std::vector<SymbolId> symbols;
  std::size_t words = 0;  // pieces that are no marks
  std::vector<std::string> dropped;
  std::set<std::string, std::less<>> dropped_once;

  void drop(const SpokenChar& unread) {
    std::string written(text.substr(unread.source.begin, unread.source.end - unread.source.begin));
    if (dropped_once.insert(written).second) dropped.push_back(std::move(written));
  }

  // Makes the symbols from `first_symbol` on a piece.
  void add_piece(std::size_t first_symbol, std::size_t begin, std::size_t end, bool mark) {
    if (symbols.size() == first_symbol) return;
    pieces.push_back({first_symbol, symbols.size() - first_symbol, begin, end, mark});
    words += !mark;
  }
};

PhonesFrontEnd::PhonesFrontEnd(SymbolTable symbols, std::vector<std::byte> zh_lexicon, std::uint32_t max_prompt_tokens)
    : symbols_(std::move(symbols)),
      lexicon_(std::move(zh_lexicon)),
      max_prompt_tokens_(max_prompt_tokens),
      start_(symbols_.at("[Stts]")),
      speaker_(symbols_.at("[spk_emb]")),
      no_speaker_(symbols_.at("[empty_spk]")),
      end_(symbols_.at("[Ptts]")),
      separator_(symbols_.at("_")),
      full_stop_(symbols_.at(".")),
      question_(symbols_.at("?")),
      exclamation_(symbols_.at("!")) {
  if (max_prompt_tokens_ != 0 && max_prompt_tokens_ < kMinPromptTokens) {
    throw std::runtime_error("max_prompt_tokens is " + std::to_string(max_prompt_tokens_) + "; a phones voice needs at least " +
                             std::to_string(kMinPromptTokens));
  }
  for (const auto& [mark, symbol] : kMarks) static_cast<void>(symbols_.at(symbol));
  for (const std::string& initial : lexicon_.initial_names()) initials_.push_back(symbols_.at(initial));
  for (const std::string& name : lexicon_.final_names()) {
    Final& added = finals_.emplace_back();
    for (int tone = 1; tone <= 5; ++tone) added.tones[tone - 1] = symbols_.at(name + std::to_string(tone));
  }
}

void PhonesFrontEnd::read_han(Analysis& analysis, std::size_t begin, std::size_t end) const {
  std::u32string run;
  for (std::size_t i = begin; i < end; ++i) {
    run.push_back(analysis.spoken[i].c);
    if (!lexicon_.reading(run.back())) analysis.drop(analysis.spoken[i]);
  }
  for (const PinyinWord& word : read_pinyin(lexicon_, run)) {
    const std::size_t first = analysis.symbols.size();
    for (const Syllable syllable : word.syllables) {
      if (syllable.final == Syllable::kUnspoken) continue;
      if (syllable.initial != 0) analysis.symbols.push_back(initials_[syllable.initial - 1U]);
      analysis.symbols.push_back(finals_[syllable.final].tones[syllable.tone - 1]);
    }
    analysis.add_piece(first, begin + word.begin, begin + word.end, false);
  }
}

void PhonesFrontEnd::read_latin(Analysis& analysis, std::size_t begin, std::size_t end) const {
  while (begin < end) {
    std::string word;
    std::size_t next = begin;
    for (; next < end && word.size() < kMaxWordLetters; ++next) {
      const char32_t c = analysis.spoken[next].c;
      word.push_back(is_apostrophe(c) ? '\'' : static_cast<char>(c));
    }
    const std::size_t first = analysis.symbols.size();
    for (const std::string& phone : read_english(symbols_, word)) {
      if (const auto id = symbols_.find(phone)) analysis.symbols.push_back(*id);
    }
    analysis.add_piece(first, begin, next, false);
    begin = next;
  }
}

PhonesFrontEnd::Analysis PhonesFrontEnd::analyse(std::string_view text, const TextOptions& options) const {
  const std::vector<Unit> units = fold_text(text);
  SpokenOptions spoken_options{std::nullopt, options.normalize};
  if (options.language == "zh") spoken_options.language = Language::kChinese;
  if (options.language == "en") spoken_options.language = Language::kEnglish;
  Analysis analysis{text, spell_out(units, find_breaks(units), spoken_options), {}, {}, 0, {}, {}};
  const std::vector<SpokenChar>& spoken = analysis.spoken;
  const auto letter_at = [&](std::size_t i) { return i < spoken.size() && is_latin(spoken[i].c); };
  for (std::size_t begin = 0; begin < spoken.size();) {
    std::size_t end = begin + 1;
    const char32_t c = spoken[begin].c;
    if (is_han(c)) {
      while (end < spoken.size() && is_han(spoken[end].c)) ++end;
      read_han(analysis, begin, end);
    } else if (is_latin(c)) {
      while (letter_at(end) || (end < spoken.size() && is_apostrophe(spoken[end].c) && letter_at(end + 1))) ++end;
      read_latin(analysis, begin, end);
    } else if (const std::string_view symbol = mark_symbol(c); !symbol.empty()) {
      analysis.symbols.push_back(symbols_.at(symbol));
      analysis.add_piece(analysis.symbols.size() - 1, begin, end, true);
    } else if (carries_meaning(c)) {
      analysis.drop(spoken[begin]);
    }
    begin = end;
  }
  return analysis;
}

std::vector<PhonesFrontEnd::Sentence> PhonesFrontEnd::group(const Analysis& analysis, bool split) const {
  const std::vector<SpokenChar>& spoken = analysis.spoken;
  const std::vector<Piece>& pieces = analysis.pieces;
  // An atom is a word with the marks behind it; words that share a number are one atom. Marks before the first word are never heard.
  struct End {
    std::size_t piece, character;
  };
  std::vector<Atom> atoms;
  std::vector<End> ends;  // of each atom, exclusive
  std::uint32_t cost = 0;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    if (!pieces[p].mark) cost += static_cast<std::uint32_t>(pieces[p].symbols) + 1;  // a separator or mark follows
    if (p + 1 < pieces.size() && (pieces[p + 1].mark || cost == 0)) continue;
    std::size_t cut = spoken.size();
    Break after = Break::kSentence;
    if (p + 1 < pieces.size()) {
      const Piece& next = pieces[p + 1];
      if (spoken[next.begin].source.begin < spoken[pieces[p].end - 1].source.end) continue;
      after = Break::kNone;
      cut = pieces[p].end;
      for (std::size_t i = pieces[p].end - 1; i < next.begin; ++i) {
        if (spoken[i].after >= after && spoken[i].after != Break::kNone) {
          after = spoken[i].after;
          cut = i + 1;
        }
      }
    }
    atoms.push_back({cost, after});
    ends.push_back({p + 1, cut});
    cost = 0;
  }
  std::vector<std::size_t> groups{atoms.size()};
  if (split) groups = group_atoms(atoms, {kMinUtteranceSymbols, kMaxUtteranceSymbols});
  std::vector<Sentence> sentences;
  std::size_t piece = 0, begin = 0;
  for (const std::size_t end : groups) {
    const End& last = ends[end - 1];
    sentences.push_back({piece, last.piece, begin, last.character});
    piece = last.piece;
    begin = last.character;
  }
  return sentences;
}

// The first ? or ! of the marks at the end, else a full stop.
SymbolId PhonesFrontEnd::closing_mark(const Analysis& analysis, const Sentence& sentence) const {
  SymbolId closing = full_stop_;
  for (std::size_t p = sentence.end_piece; p > sentence.first_piece && analysis.pieces[p - 1].mark; --p) {
    const SymbolId mark = analysis.symbols[analysis.pieces[p - 1].first_symbol];
    if (mark == question_ || mark == exclamation_) closing = mark;
  }
  return closing;
}

PreparedUtterance PhonesFrontEnd::assemble(const Analysis& analysis, const Sentence& sentence, bool has_speaker) const {
  PreparedUtterance out;
  out.tokens = {start_, has_speaker ? speaker_ : no_speaker_};
  out.shared_prefix = static_cast<std::uint32_t>(out.tokens.size());
  bool after_mark = true;  // nothing to separate, and no mark to set, at the start
  for (std::size_t p = sentence.first_piece; p < sentence.end_piece; ++p) {
    const Piece& piece = analysis.pieces[p];
    if (piece.mark && after_mark) continue;
    if (!piece.mark && !after_mark) out.tokens.push_back(separator_);
    const auto first = analysis.symbols.begin() + static_cast<std::ptrdiff_t>(piece.first_symbol);
    out.tokens.insert(out.tokens.end(), first, first + static_cast<std::ptrdiff_t>(piece.symbols));
    after_mark = piece.mark;
  }
  // The voice has learned to stop after . ? ! only.
  if (!after_mark) out.tokens.push_back(full_stop_);
  out.tokens.back() = closing_mark(analysis, sentence);
  out.tokens.push_back(end_);

  std::size_t begin = sentence.begin, end = sentence.end;
  while (begin < end && analysis.spoken[begin].blank) ++begin;
  while (end > begin && analysis.spoken[end - 1].blank) --end;
  out.source = {analysis.spoken[begin].source.begin, analysis.spoken[end - 1].source.end};
  std::u32string words;
  for (std::size_t i = begin; i < end; ++i) words.push_back(analysis.spoken[i].c);
  out.spoken = collapsed(words);
  return out;
}

Result<PreparedText> PhonesFrontEnd::prepare(std::string_view text, const TextOptions& options) const {
  if (const auto at = find_invalid_utf8(text)) return invalid("the text is not valid UTF-8 at byte " + std::to_string(*at));
  if (text.find('\0') != std::string_view::npos) return invalid("the text contains a NUL character");
  Analysis analysis = analyse(text, options);
  if (analysis.words == 0) return invalid("nothing in the text can be spoken");
  PreparedText out;
  for (const Sentence& sentence : group(analysis, options.split)) {
    out.utterances.push_back(assemble(analysis, sentence, options.has_speaker));
    const std::size_t tokens = out.utterances.back().tokens.size();
    if (max_prompt_tokens_ != 0 && tokens > max_prompt_tokens_) {
      return Error{ErrorCode::kTooLarge,
                   "the text needs " + std::to_string(tokens) + " tokens in one utterance, the limit is " +
                       std::to_string(max_prompt_tokens_) + "; let it be split into sentences",
                   "text",
                   {}};
    }
  }
  out.dropped = std::move(analysis.dropped);
  return out;
}

Result<std::vector<std::int32_t>> PhonesFrontEnd::prepare_refine(std::string_view, std::string_view) const {
  return Error{ErrorCode::kUnsupported, "this voice has no text refinement", "", {}};
}

Result<PreparedUtterance> PhonesFrontEnd::prepare_refined(std::span<const std::int32_t>, const TextOptions&) const {
  return Error{ErrorCode::kUnsupported, "this voice has no text refinement", "", {}};
}

std::unique_ptr<FrontEnd> load_phones_front_end(const engine::Manifest& manifest) {
  SymbolTable symbols(read_model_file(manifest, "symbols"), manifest.architecture.gpt.num_text_tokens);
  return std::make_unique<PhonesFrontEnd>(std::move(symbols), read_model_file(manifest, "zh_lexicon"), manifest.max_prompt_tokens);
}

}  // namespace tts::text
