#include "listener.h"

#include <memory>
#include <optional>
#include <utility>

#include <boost/system/system_error.hpp>

#include "audio_meter.h"
#include "playback.h"

namespace tts::bench {
namespace {

constexpr std::size_t kMostErrorBytes = 300;

bool is_refusal(int status) { return status == 429 || status == 503; }

class Ear final : public ReplySink {
 public:
  Ear(const ListenerParts& parts, Outcome& outcome) : parts_(parts), outcome_(outcome) {}

  void head(const ReplyHead& head) override {
    status_ = head.status;
    outcome_.retry_after = head.retry_after;
    if (status_ == 200) meter_ = make_audio_meter(parts_.format, head.sample_rate);
  }

  void body(std::span<const std::uint8_t> bytes) override {
    const double at = parts_.now();
    if (status_ != 200) {
      if (error_.size() < kMostErrorBytes) error_.append(bytes.begin(), bytes.end());
      return;
    }
    if (outcome_.first_byte == 0) outcome_.first_byte = at - outcome_.asked;
    const auto metered = meter_->feed(bytes);
    if (metered.seconds <= 0) return;
    if (last_) outcome_.gaps.push_back(at - *last_);
    last_ = at;
    const bool fluent = playback_.underruns() == 0;
    const auto silence = playback_.underrun_seconds();
    const double heard = playback_.arrived(at, metered.seconds);
    parts_.tally.audio += metered.seconds;
    if (playback_.underrun_seconds() > silence) {
      ++parts_.tally.underruns;
      parts_.tally.underrun_seconds += playback_.underrun_seconds() - silence;
      if (fluent) ++parts_.tally.dry;
    }
    if (metered.audible) outcome_.first_audio = heard + *metered.audible - outcome_.asked;
  }

  void end() {
    outcome_.total = parts_.now() - outcome_.asked;
    outcome_.audio = playback_.received();
    outcome_.played_until = playback_.ends_at();
    if (status_ == 200 && playback_.started()) {
      outcome_.fate = Fate::kDone;
      if (outcome_.first_audio == 0) outcome_.first_audio = outcome_.played_until - outcome_.asked;
    } else if (status_ == 200) {
      outcome_.error = "a reply without audio";
    } else {
      outcome_.fate = is_refusal(status_) ? Fate::kRefused : Fate::kFailed;
      outcome_.error = std::to_string(status_) + " " + error_.substr(0, kMostErrorBytes);
    }
  }

 private:
  const ListenerParts& parts_;
  Outcome& outcome_;
  int status_ = 0;
  std::string error_;
  std::unique_ptr<AudioMeter> meter_;
  Playback playback_;
  std::optional<double> last_;
};

}  // namespace

boost::asio::awaitable<Outcome> listen(const ListenerParts& parts, std::string body) {
  Outcome outcome;
  outcome.asked = parts.now();
  ++parts.tally.asked;
  try {
    Ear ear(parts, outcome);
    co_await post(parts.server, parts.path, std::move(body), parts.patience, ear);
    ear.end();
  } catch (const boost::system::system_error& error) {
    outcome.error = "the connection broke: " + error.code().message();
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  switch (outcome.fate) {
    case Fate::kDone: ++parts.tally.done; break;
    case Fate::kRefused: ++parts.tally.refused; break;
    case Fate::kFailed: ++parts.tally.failed; break;
  }
  co_return outcome;
}

}  // namespace tts::bench
