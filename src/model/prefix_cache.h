#pragma once
// Keys and values of prompt prefixes that recur (a voice and its style), the least recently used leave first.
//
// An entry is reserved when its utterance is admitted, so that nothing is allocated while steps run, filled when its positions have been
// computed, and only then found. Thread: one.

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tts::model {

// What the keys and values of a prefix depend on, as bytes.
std::string prefix_key(std::span<const std::int32_t> tokens, std::int32_t speaker_token, std::span<const float> speaker);

class PrefixCache {
 public:
  struct Entry {
    std::vector<std::byte> bytes;
    bool filled = false;
  };

  explicit PrefixCache(std::size_t capacity_bytes) : capacity_(capacity_bytes) {}  // 0 = keeps nothing

  // The filled entry of this key; null when there is none. Counts a hit or a miss.
  std::shared_ptr<const Entry> find(std::string_view key);

  // Room for the key, to be filled by the caller; null when the cache is too small for it or somebody else is filling it already.
  std::shared_ptr<Entry> reserve(const std::string& key, std::size_t bytes);

  std::uint64_t hits() const noexcept { return hits_; }
  std::uint64_t misses() const noexcept { return misses_; }
  std::size_t bytes() const noexcept { return bytes_; }  // of all entries and their keys

 private:
  struct Item {
    std::string key;
    std::shared_ptr<Entry> entry;
  };
  using Items = std::list<Item>;

  static std::size_t size_of(const Item& item) noexcept { return item.key.size() + item.entry->bytes.size(); }

  std::size_t capacity_, bytes_ = 0;
  std::uint64_t hits_ = 0, misses_ = 0;
  Items items_;                                                   // most recently used first
  std::unordered_map<std::string_view, Items::iterator> by_key_;  // views into the items
};

}  // namespace tts::model
