#pragma once
// A whole server in this process: from the configuration to ports that answer.

#include <filesystem>
#include <memory>
#include <string>

#include "tts/api/catalog.h"
#include "tts/api/speech_api.h"
#include "tts/config/config.h"
#include "tts/net/readiness.h"
#include "tts/net/server.h"
#include "tts/synthesis/synthesis.h"

#include "composition.h"

namespace tts::app {

class LocalServer {
 public:
  // Loads the model. Blocks for the whole load; throws std::runtime_error listing what is wrong. `config` must outlive the server.
  LocalServer(const config::Config& config, const std::filesystem::path& program);

  // Binds the ports and speaks a sentence through the whole pipeline, alone and, as far as the limits allow, in company: a server that
  // cannot do this must not say that it is ready. Returns the figures of the sentence alone. Throws std::runtime_error. Once.
  synthesis::SynthesisReport warm_up();

  // Ready: clients are let in.
  void open();

  Speech& speech() noexcept { return speech_; }
  const api::Catalog& catalog() const noexcept { return api_.catalog(); }
  net::Server& http() noexcept { return *http_; }  // after warm_up()
  std::string url() const;                         // of the open server, as clients of this machine reach it
  std::string admin_url() const;

 private:
  const config::Config& config_;
  Speech speech_;
  const api::SpeechApi api_;
  net::Readiness readiness_;
  std::unique_ptr<net::Server> http_;  // last: it uses everything above
};

}  // namespace tts::app
