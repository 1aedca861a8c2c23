#pragma once
// GET /v1/stream: who may have a WebSocket.

#include "tts/stream/sessions.h"

#include "router.h"
#include "stream_socket.h"

namespace tts::net {

// Everything must outlive the route.
Route stream_route(const StreamSocket::Parts& parts);

}  // namespace tts::net
