#pragma once
// Encoded packets between the thread that makes them and the connection that sends them: bounded in bytes, addressed by
// sequence number. The producer appends and finishes; the consumer reads and acknowledges. Neither ever blocks.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tts/base/result.h"

namespace tts::resume {

// What a consumer should know before the audio behind it.
struct Mark {
  enum class Kind : std::uint8_t {
    kSentence,  // a sentence begins
    kFlushed,   // a flush asked for has been done
  } kind = Kind::kSentence;
  std::uint32_t index = 0;             // of the sentence
  std::uint64_t begin = 0, end = 0;    // code points of all the text so far, half open: the sentence; kFlushed: [0, end) lies before
  std::uint64_t first_sample = 0;      // where that is in the request, at the output rate

  bool operator==(const Mark&) const = default;
};

struct Packet {
  std::uint32_t seq = 0;            // counts from 1
  std::uint64_t first_sample = 0;   // position of this packet's audio in the request, at the output rate
  std::vector<Mark> marks;          // stand before the audio
  std::vector<std::uint8_t> bytes;  // may be empty where there are marks
};

struct StreamLogOptions {
  std::size_t high_water_bytes = 512 * 1024;  // at or above this many unacknowledged bytes, marks included, the producer should pause
  std::size_t low_water_bytes = 256 * 1024;   // below this it may go on
};

// Thread-safe: one producer and one consumer, on any threads.
class StreamLog {
 public:
  explicit StreamLog(StreamLogOptions options = {});
  ~StreamLog();

  // Producer. append() always takes the packet (nothing made is ever lost) and returns true while below high water.
  bool append(std::uint64_t first_sample, std::vector<std::uint8_t> bytes, std::vector<Mark> marks = {});
  void finish();                 // no more packets; idempotent
  void fail(Error error);        // no more packets, for this reason; ignored after finish()
  void set_drain_callback(std::function<void()> below_low_water);  // called on the consumer's thread, outside locks

  // Consumer. next(seq) copies nothing that was acknowledged away; nullptr = not there yet, or the end.
  std::shared_ptr<const Packet> next(std::uint32_t seq);  // packet with this number
  void acknowledge(std::uint32_t seq);                    // packets up to and including seq may be dropped
  void close();                                           // the consumer has gone; later appends are discarded
  // One-shot: called once, outside locks, on whichever thread makes packet `seq` available or ends the stream; at once if so already.
  void notify_when(std::uint32_t seq, std::function<void()> ready);

  bool ended() const;                    // finish() or fail() was called
  std::optional<Error> error() const;
  std::uint32_t last_seq() const;        // 0 = none yet
  std::size_t held_bytes() const;        // unacknowledged, marks included
  std::optional<std::uint64_t> first_held_sample() const;  // position of the audio that waits longest for its acknowledgement
  bool closed() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tts::resume
