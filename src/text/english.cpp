#include "english.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <mutex>

#include <flite/flite.h>

extern "C" cst_lexicon* cmu_lex_init(void);  // flite ships no header for its lexicons

namespace tts::text {
namespace {

using Phones = std::vector<std::string>;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_stressed(const std::string& phone) { return phone.back() >= '0' && phone.back() <= '2'; }

bool is_one_of(const std::string& phone, std::initializer_list<std::string_view> set) {
  return std::ranges::find(set, std::string_view(phone)) != set.end();
}

bool is_bare_vowel(const std::string& phone) {
  return is_one_of(phone, {"AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"});
}

// flite writes "ax" and "ah1"; the voice knows AH0 and AH1.
std::string normalised(std::string_view flite_phone) {
  std::string phone(flite_phone);
  for (char& c : phone) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  if (phone.starts_with("AX")) phone = "AH" + (phone.size() > 2 ? phone.substr(2) : "0");
  if (is_bare_vowel(phone)) phone += '0';
  return phone;
}

Phones look_up(const std::string& word) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static cst_lexicon* const lexicon = [] {
    flite_init();
    return cmu_lex_init();  // static data of the library: never freed
  }();
  const std::unique_ptr<cst_val, decltype(&delete_val)> phones(lex_lookup(lexicon, word.c_str(), nullptr, nullptr), delete_val);
  Phones out;
  for (const cst_val* phone = phones.get(); phone != nullptr; phone = val_cdr(phone)) {
    if (const std::string_view name = val_string(val_car(phone)); !name.empty()) out.push_back(normalised(name));
  }
  return out;
}

// American flap: T between a vowel or R and an unstressed vowel.
Phones flapped(Phones phones) {
  const Phones original = phones;
  for (std::size_t k = 1; k + 1 < phones.size(); ++k) {
    const bool after_vowel = is_stressed(original[k - 1]) || original[k - 1] == "R";
    if (original[k] == "T" && after_vowel && original[k + 1].back() == '0') phones[k] = "DX";
  }
  return phones;
}

Phones spelled(const SymbolTable& symbols, std::string_view letters) {
  Phones out;
  for (const char letter : letters) out.insert(out.end(), symbols.letter(letter).begin(), symbols.letter(letter).end());
  return out;
}

// Capital words are spelled when they are short (but four letters tend to be words: NASA) or have no vowel.
bool is_initialism(std::string_view word) {
  if (!std::ranges::all_of(word, [](char c) { return is_upper(c) || c == '\''; })) return false;
  const bool is_short = word.size() > 1 && word.size() <= 5 && word.size() != 4;
  return is_short || word.find_first_of("AEIOUY") == std::string_view::npos;
}

// The lexicon knows words with one apostrophe at most.
bool may_be_listed(std::string_view word) { return std::ranges::count(word, '\'') <= 1; }

}  // namespace

std::vector<std::string> read_english(const SymbolTable& symbols, std::string_view written) {
  assert(!written.empty() && written.size() <= kMaxWordLetters);
  std::string word(written), letters;
  for (char& c : word) {
    if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
    if (c != '\'') letters.push_back(c);
  }
  if (const auto found = symbols.function_words().find(word); found != symbols.function_words().end()) return found->second;
  if (letters.size() == 1 || is_initialism(written)) return spelled(symbols, letters);
  if (word.ends_with("'s") && word.size() > 3) {
    const Phones stem = look_up(word.substr(0, word.size() - 2));
    const std::string last = stem.empty() ? "AH0" : stem.back();
    Phones out = flapped(stem);
    if (is_one_of(last, {"S", "Z", "SH", "ZH", "CH", "JH"})) out.push_back("IH0");
    out.push_back(is_one_of(last, {"P", "T", "K", "F", "TH"}) ? "S" : "Z");
    return out;
  }
  const Phones phones = look_up(may_be_listed(word) ? word : letters);
  return phones.empty() ? flapped(spelled(symbols, letters)) : flapped(phones);
}

}  // namespace tts::text
