#pragma once
// One request, listened to while it arrives.

#include <chrono>
#include <functional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "http_client.h"
#include "outcome.h"
#include "tally.h"

namespace tts::bench {

// Seconds since the load began.
using LoadClock = std::function<double()>;

struct ListenerParts {  // references outlive every request
  const Server& server;
  const std::string& path;
  const std::string& format;  // one that make_audio_meter takes
  std::chrono::milliseconds patience;
  const LoadClock& now;
  Tally& tally;
};

// POSTs `body`; never throws for what the server or the network does.
boost::asio::awaitable<Outcome> listen(const ListenerParts& parts, std::string body);

}  // namespace tts::bench
