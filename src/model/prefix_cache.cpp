#include "prefix_cache.h"

namespace tts::model {
namespace {

template <class T>
void append(std::string& to, std::span<const T> values) {
  to.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

}  // namespace

std::string prefix_key(std::span<const std::int32_t> tokens, std::int32_t speaker_token, std::span<const float> speaker) {
  const std::int32_t count = static_cast<std::int32_t>(tokens.size());
  std::string key;
  append(key, std::span(&count, 1));
  append(key, tokens);
  if (!speaker.empty()) {
    append(key, std::span<const std::int32_t>(&speaker_token, 1));
    append(key, speaker);
  }
  return key;
}

std::shared_ptr<const PrefixCache::Entry> PrefixCache::find(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || !found->second->entry->filled) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  items_.splice(items_.begin(), items_, found->second);
  return found->second->entry;
}

std::shared_ptr<PrefixCache::Entry> PrefixCache::reserve(const std::string& key, std::size_t bytes) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    const std::shared_ptr<Entry>& entry = found->second->entry;
    // Whoever was to fill it may have gone before its prompt was consumed.
    return !entry->filled && entry.use_count() == 1 ? entry : nullptr;
  }
  if (key.size() + bytes > capacity_) return nullptr;
  while (bytes_ + key.size() + bytes > capacity_) {
    bytes_ -= size_of(items_.back());
    by_key_.erase(items_.back().key);
    items_.pop_back();
  }
  items_.push_front({key, std::make_shared<Entry>(Entry{.bytes = std::vector<std::byte>(bytes), .filled = false})});
  by_key_.emplace(items_.front().key, items_.begin());
  bytes_ += size_of(items_.front());
  return items_.front().entry;
}

}  // namespace tts::model
