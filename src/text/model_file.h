#pragma once
// Files that a manifest names.

#include <cstddef>
#include <string>
#include <vector>

#include "tts/engine/manifest.h"

namespace tts::text {

// The whole content of the file with this role. Read once and hashed in memory, so that what was checked is what is used. Throws
// std::runtime_error when the manifest has no such role, or the file is unreadable or differs from the manifest.
std::vector<std::byte> read_model_file(const engine::Manifest& manifest, const std::string& role);

}  // namespace tts::text
