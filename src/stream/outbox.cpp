#include "outbox.h"

#include <algorithm>
#include <utility>

namespace tts::stream {
namespace {

constexpr std::size_t kItemBytes = sizeof(OutboxItem);  // counted for every item, so that a flood of tiny ones is bounded too

}  // namespace

std::size_t OutboxItem::bytes() const noexcept {
  const auto* const held = frame();
  return kItemBytes + (held != nullptr ? held->piece.payload.size : std::get<Message>(content).text.size());
}

void Outbox::queue(const OutboxItem& item, int sign) noexcept {
  const auto* const frame = item.frame();
  if (sign > 0) {
    queued_bytes_ += item.bytes();
    if (frame != nullptr) queued_audio_ += frame->audio;
  } else {
    queued_bytes_ -= item.bytes();
    if (frame != nullptr) queued_audio_ -= frame->audio;
  }
}

void Outbox::push(Message message) {
  items_.push_back({.seq = 0, .content = std::move(message)});
  queue(items_.back(), 1);
}

void Outbox::push(Frame frame) {
  items_.push_back({.seq = 0, .content = std::move(frame)});
  queue(items_.back(), 1);
}

void Outbox::push_next(Message message) {
  const auto at = items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(fresh_), {.seq = 0, .content = std::move(message)});
  queue(*at, 1);
}

const OutboxItem* Outbox::take() {
  if (nothing_to_send()) return nullptr;
  OutboxItem& item = items_[sent_];
  queue(item, -1);
  kept_bytes_ += item.bytes();
  if (item.frame() != nullptr && item.seq == 0) item.seq = ++last_seq_;
  ++sent_;
  fresh_ = std::max(fresh_, sent_);
  return &item;
}

void Outbox::drop_front() noexcept {
  const OutboxItem& item = items_.front();
  kept_bytes_ -= item.bytes();
  if (item.seq != 0) dropped_seq_ = item.seq;
  items_.pop_front();
  --sent_;
  --fresh_;
}

void Outbox::acknowledge(std::uint32_t seq) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < sent_; ++i) {
    if (items_[i].seq != 0 && items_[i].seq <= seq) count = i + 1;
    if (items_[i].seq > seq) break;
  }
  for (; count > 0; --count) drop_front();
}

void Outbox::keep_at_most(std::size_t bytes) noexcept {
  while (kept_bytes_ > bytes && sent_ > 0) drop_front();
}

void Outbox::drop_unsent(std::uint16_t context) {
  const auto gone = [&](const OutboxItem& item) {
    return std::visit([&](const auto& content) { return content.context == context; }, item.content);
  };
  const auto first = items_.begin() + static_cast<std::ptrdiff_t>(fresh_);
  const auto rest = std::remove_if(first, items_.end(), [&](const OutboxItem& item) {
    if (!gone(item)) return false;
    queue(item, -1);
    return true;
  });
  items_.erase(rest, items_.end());
}

std::optional<Outbox::Rewind> Outbox::rewind(std::uint32_t seq) noexcept {
  if (seq > last_seq_) return std::nullopt;
  std::size_t to = 0;  // after the frame `seq`, if it is still there
  for (std::size_t i = 0; i < fresh_; ++i) {
    if (items_[i].seq != 0 && items_[i].seq <= seq) to = i + 1;
  }
  for (; sent_ > to; --sent_) {
    const OutboxItem& item = items_[sent_ - 1];
    kept_bytes_ -= item.bytes();
    queue(item, 1);
  }
  for (; sent_ < to; ++sent_) {
    queue(items_[sent_], -1);
    kept_bytes_ += items_[sent_].bytes();
  }
  Rewind rewind{.from = std::max(seq, dropped_seq_) + 1, .gap = dropped_seq_ > seq};
  for (std::size_t i = sent_; rewind.gap && i < items_.size(); ++i) {
    const auto* const frame = items_[i].frame();
    if (frame == nullptr) continue;
    rewind.context = frame->context;
    rewind.first_sample = frame->piece.first_sample;
    break;
  }
  return rewind;
}

Duration Outbox::audio_after(std::uint32_t seq, std::uint16_t context) const noexcept {
  Duration sum{0};
  for (auto item = items_.rbegin(); item != items_.rend() && (item->seq == 0 || item->seq > seq); ++item) {
    const auto* const frame = item->frame();
    if (frame != nullptr && (context == 0 || frame->context == context)) sum += frame->audio;
  }
  return sum;
}

}  // namespace tts::stream
