#include "tts/text/incremental_text.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "characters.h"
#include "sentence_splitter.h"

namespace tts::text {
namespace {

using Text = std::span<const Unit>;

constexpr std::u32string_view kFullWidthStops = U"。！？";
constexpr std::u32string_view kMarks = U"。！？!?.，、；：,;:—…";
constexpr std::u32string_view kClosing = U"”’）)]】」』》〉}»\"'";

bool contains(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }

bool is_visible_ascii(char32_t c) { return c > U' ' && c < 0x7F; }

// Whether a sentence can end at this character.
bool may_end_sentence(char32_t c) { return is_line_end(c) || c == U'.' || c == U'!' || c == U'?' || contains(kFullWidthStops, c); }

// Characters that became several units are never cut.
bool ends_character(Text text, std::size_t at) { return at + 1 == text.size() || text[at + 1].source.begin != text[at].source.begin; }

// Whether the run of marks that ends here, perhaps with closing marks, has a full-width stop in it.
bool ends_full_width(Text text, std::size_t at) {
  while (at > 0 && contains(kClosing, text[at].c)) --at;
  for (;; --at) {
    if (contains(kFullWidthStops, text[at].c)) return true;
    if (!contains(kMarks, text[at].c) || at == 0) return false;
  }
}

// Whether the sentence that ends here would end here whatever followed the text.
bool is_certain(Text text, std::size_t at) {
  if (is_line_end(text[at].c) || ends_full_width(text, at)) return true;
  std::size_t follower = at + 1;
  while (follower < text.size() && is_space(text[follower].c)) ++follower;
  if (follower == text.size()) return false;
  // What looks like a stop belongs to an address if one is written around it, which shows only when its last character has come.
  std::size_t run = at;
  while (run < text.size() && is_visible_ascii(text[run].c)) ++run;
  return run < text.size();
}

// In bytes: the end of the white space behind `at`.
std::size_t end_with_space(Text text, std::size_t at) {
  std::size_t end = at;
  for (std::size_t i = at + 1; i < text.size() && is_space(text[i].c); ++i) {
    if (ends_character(text, i)) end = i;
  }
  return text[end].source.end;
}

}  // namespace

void IncrementalText::append(std::string_view text, TimePoint now) {
  held_ += text;
  look_at(text, now);
}

std::string IncrementalText::take_certain(TimePoint now) {
  if (!may_end_) return {};
  const std::vector<Unit> units = fold_text(held_);
  const std::vector<Break> breaks = find_breaks(units);
  for (std::size_t i = units.size(); i-- > 0;) {
    if (breaks[i] == Break::kSentence && ends_character(units, i) && is_certain(units, i)) return take(end_with_space(units, i), now);
  }
  return {};
}

std::string IncrementalText::take_due(TimePoint now) {
  if (now < due_at()) return {};
  std::vector<Unit> units = fold_text(held_);
  const std::size_t count = units.size();
  // A line end behind it, because what ends a text is always called a sentence.
  units.push_back({U'\n', {held_.size(), held_.size()}});
  const std::vector<Break> breaks = find_breaks(units);
  std::optional<std::size_t> clause, word;
  bool visible = false;
  for (std::size_t i = 0; i < count; ++i) {
    visible = visible || !is_space(units[i].c);
    if (!visible || !ends_character(units, i)) continue;
    if (breaks[i] >= Break::kClause) clause = i;
    const bool may_go_on = i + 1 == count && is_visible_ascii(units[i].c);  // the last address or sign is not complete yet
    if (breaks[i] == Break::kWord && !may_go_on) word = i;
  }
  if (!clause) clause = word;
  units.pop_back();
  return clause ? take(end_with_space(units, *clause), now) : take_all();
}

std::string IncrementalText::take_all() {
  may_end_ = visible_ = false;
  return std::exchange(held_, {});
}

TimePoint IncrementalText::due_at() const noexcept {
  return max_delay_ > Duration(0) && visible_ ? since_ + max_delay_ : TimePoint::max();
}

std::string IncrementalText::take(std::size_t bytes, TimePoint now) {
  std::string rest = held_.substr(bytes);
  held_.resize(bytes);
  std::string taken = std::exchange(held_, std::move(rest));
  may_end_ = visible_ = false;
  look_at(held_, now);
  return taken;
}

void IncrementalText::look_at(std::string_view added, TimePoint now) {
  const bool was_visible = visible_;
  for (const Unit& unit : fold_text(added)) {
    may_end_ = may_end_ || may_end_sentence(unit.c);
    visible_ = visible_ || !is_space(unit.c);
  }
  if (visible_ && !was_visible) since_ = now;
}

}  // namespace tts::text
