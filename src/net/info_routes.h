#pragma once
// Routes that describe: the public documents, and the admin listener's probes and metrics.

#include <vector>

#include "tts/net/server.h"

#include "router.h"

namespace tts::net {

// Handlers keep a reference to `parts`.
std::vector<Route> document_routes(const ServerParts& parts);
std::vector<Route> admin_routes(const ServerParts& parts);

}  // namespace tts::net
