#pragma once
// What a session's client gets, in order: frames of audio and messages. Holds what was not sent yet, and of what was sent that which the
// client has not acknowledged, so that a new socket can go on where the old one broke off.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "tts/base/clock.h"

#include "frame_cutter.h"

namespace tts::stream {

struct Frame {
  std::uint16_t context = 0;
  bool last = false;  // of its context; no payload
  Piece piece;
  Duration audio{0};  // time in which it is heard
};

struct Message {
  std::string text;           // JSON
  std::uint16_t context = 0;  // dropped with it; 0 = with none
};

struct OutboxItem {
  std::uint32_t seq = 0;  // of a frame that was sent at least once; 0 = not yet, or a message
  std::variant<Message, Frame> content;

  const Frame* frame() const noexcept { return std::get_if<Frame>(&content); }
  std::size_t bytes() const noexcept;
};

// Not thread-safe.
class Outbox {
 public:
  void push(Message message);
  void push(Frame frame);
  // Before everything that was never sent.
  void push_next(Message message);

  // The next to be sent, which counts as sent from now on; null = nothing. Frames get their number here, the first time. Valid until the
  // next call that is not const.
  const OutboxItem* take();

  // What was sent up to this frame need not be kept.
  void acknowledge(std::uint32_t seq) noexcept;
  // Drops the oldest of what was sent until no more than so many bytes of it are left.
  void keep_at_most(std::size_t bytes) noexcept;
  // Drops the context's frames and messages that were never sent.
  void drop_unsent(std::uint16_t context);

  struct Rewind {
    std::uint32_t from = 0;  // number of the next frame
    bool gap = false;        // frames before it are no longer there
    std::uint16_t context = 0;       // with a gap, of the frame `from`; 0 = there is no such frame yet
    std::uint64_t first_sample = 0;  // likewise
  };
  // Everything after this frame is to be sent again. nullopt: no frame of this number was ever sent.
  std::optional<Rewind> rewind(std::uint32_t seq) noexcept;

  bool nothing_to_send() const noexcept { return sent_ == items_.size(); }
  std::size_t queued_bytes() const noexcept { return queued_bytes_; }  // not sent
  Duration queued_audio() const noexcept { return queued_audio_; }
  std::size_t kept_bytes() const noexcept { return kept_bytes_; }      // sent, and neither acknowledged nor dropped
  std::uint32_t last_seq() const noexcept { return last_seq_; }        // sent; 0 = none

  // Audio of the context (0 = of all) in frames after this number and in those not sent.
  Duration audio_after(std::uint32_t seq, std::uint16_t context) const noexcept;

 private:
  void queue(const OutboxItem& item, int sign) noexcept;
  void drop_front() noexcept;

  std::deque<OutboxItem> items_;
  std::size_t sent_ = 0;   // items before this index are sent; those from here on wait
  std::size_t fresh_ = 0;  // items from here on were never sent; >= sent_
  std::size_t queued_bytes_ = 0, kept_bytes_ = 0;
  Duration queued_audio_{0};
  std::uint32_t last_seq_ = 0;
  std::uint32_t dropped_seq_ = 0;  // of the newest frame that is no longer there
};

}  // namespace tts::stream
