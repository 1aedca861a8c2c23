// mu-law and A-law, a byte a sample, without any container.

#include <algorithm>

#include "encoders.h"
#include "g711.h"
#include "samples.h"

namespace tts::audio {
namespace {

template <std::uint8_t (*compress)(std::int16_t) noexcept>
class G711Encoder final : public Encoder {
 public:
  void start(Bytes&) override {}

  void encode(std::span<const float> samples, Bytes& out) override {
    const std::size_t begin = out.size();
    out.resize(begin + samples.size());
    const auto to = out.begin() + static_cast<std::ptrdiff_t>(begin);
    std::ranges::transform(samples, to, [](float sample) { return compress(to_s16(sample)); });
  }

  void finish(Bytes&) override {}
};

}  // namespace

std::unique_ptr<Encoder> make_mulaw_encoder() { return std::make_unique<G711Encoder<to_mulaw>>(); }
std::unique_ptr<Encoder> make_alaw_encoder() { return std::make_unique<G711Encoder<to_alaw>>(); }

}  // namespace tts::audio
