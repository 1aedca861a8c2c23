#include "tts/text/front_end.h"

#include <stdexcept>

#include "chattts_front_end.h"
#include "phones_front_end.h"

namespace tts::text {

std::unique_ptr<FrontEnd> load_front_end(const engine::Manifest& manifest) {
  switch (manifest.front_end) {
    case engine::TextFrontEndKind::kPhones: return load_phones_front_end(manifest);
    case engine::TextFrontEndKind::kChattts: return load_chattts_front_end(manifest);
  }
  throw std::runtime_error("model " + manifest.name + " asks for an unknown text front end");
}

}  // namespace tts::text
