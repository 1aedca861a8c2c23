#pragma once
// A catalog with two voices of different gender, as tests of the api need it.

#include "tts/api/catalog.h"

namespace tts::api {

inline Catalog test_catalog() {
  Catalog catalog;
  catalog.version = "9.9.9";
  catalog.model = "nano";
  catalog.model_title = "Nano";
  catalog.license = "Apache-2.0";
  catalog.voices = {{"mei", "Mei", "female", {"zh"}}, {"tom", "Tom", "male", {"en"}}, {"ann", "Ann", "female", {"en"}}};
  catalog.default_voice = "mei";
  catalog.sampling.max_steps = 700;
  catalog.max_text_chars = 10;
  catalog.max_timeout_ms = 60'000;
  return catalog;
}

}  // namespace tts::api
