#pragma once
// The composition root: which object gets which, in what order they live and die.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tts/api/catalog.h"
#include "tts/base/clock.h"
#include "tts/config/config.h"
#include "tts/dispatch/engine_pool.h"
#include "tts/engine/manifest.h"
#include "tts/engine/step_engine.h"
#include "tts/engine/voice.h"
#include "tts/observability/metrics.h"
#include "tts/scheduling/scheduler.h"
#include "tts/synthesis/synthesis.h"
#include "tts/text/front_end.h"

namespace tts::app {

// A model folder, read: everything that speech needs, nothing that runs yet.
struct LoadedParts {
  engine::Manifest manifest;
  std::unique_ptr<text::FrontEnd> front_end;
  std::vector<std::unique_ptr<engine::StepEngine>> engines;
  std::vector<engine::Voice> voices;
};

// Blocks for the whole load. Throws std::runtime_error listing what is wrong, or saying that this build has no model module.
LoadedParts load_parts(const config::Config& config, const std::filesystem::path& program);

// From text to audio packets: engine threads, pool, text and audio workers.
class Speech {
 public:
  Speech(LoadedParts parts, const config::Config& config);

  synthesis::Service& service() noexcept { return *service_; }
  const engine::UtteranceEngine& engine() const noexcept { return *pool_; }
  std::uint32_t engines() const noexcept { return static_cast<std::uint32_t>(schedulers_.size()); }
  std::string devices() const;  // for people: "cpu, fp32", "2 x cuda:0, 2 x cuda:1, bf16 weights, ..."
  const engine::Manifest& manifest() const noexcept { return manifest_; }
  observability::Metrics& metrics() noexcept { return metrics_; }
  const Clock& clock() const noexcept { return clock_; }
  api::Catalog catalog() const;

 private:
  const config::Config& config_;
  const SteadyClock clock_;
  observability::Metrics metrics_;
  const engine::Manifest manifest_;
  const std::unique_ptr<text::FrontEnd> front_end_;
  const std::vector<engine::Voice> voices_;
  std::vector<std::unique_ptr<scheduling::Scheduler>> schedulers_;  // one an engine
  std::unique_ptr<dispatch::EnginePool> pool_;
  std::unique_ptr<synthesis::Service> service_;  // last: it uses everything above
};

}  // namespace tts::app
