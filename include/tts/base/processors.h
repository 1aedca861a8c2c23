#pragma once
// How many processors this process may keep busy.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace tts {

// Those it may run on or, where its control group grants it less time (`docker run --cpus`, limits of Kubernetes), so many as that
// suffices for: more threads would be stopped in the middle of a step. At least 1. Reads files.
std::uint32_t usable_processors();

// The least quota of a control group and those around it, in processors; none = no limit. `membership` is the text of
// /proc/self/cgroup, `mounted` where control groups of version 2 or 1 are. A group whose folder is not there, as in a container that
// sees only its own, is passed over.
std::optional<double> granted_processors(const std::filesystem::path& mounted, std::string_view membership);

}  // namespace tts
