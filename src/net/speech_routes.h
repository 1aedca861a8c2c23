#pragma once
// The three routes that speak.

#include <vector>

#include "tts/net/server.h"

#include "router.h"

namespace tts::net {

// Handlers keep a reference to `parts`.
std::vector<Route> speech_routes(const ServerParts& parts);

}  // namespace tts::net
