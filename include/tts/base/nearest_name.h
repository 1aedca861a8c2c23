#pragma once
// "Did you mean …?" for misspelt field and option names.

#include <span>
#include <string_view>

namespace tts {

// The known name with the smallest edit distance to `name`, when that is at most a third of its length (and at least one edit);
// empty otherwise. Names longer than 64 bytes match nothing, so hostile input stays cheap.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);

}  // namespace tts
