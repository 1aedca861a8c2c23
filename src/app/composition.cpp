#include "composition.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tts::app {

namespace {

// "cpu"; "2 x cuda:0, 2 x cuda:1"
std::string device_list(const std::vector<std::unique_ptr<scheduling::Scheduler>>& schedulers) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const auto& scheduler : schedulers) {
    const auto& device = scheduler->info().device;
    const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == device; });
    if (known == counts.end()) {
      counts.emplace_back(device, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [device, count] : counts) {
    if (!text.empty()) text += ", ";
    if (count > 1) text += std::to_string(count) + " x ";
    text += device;
  }
  return text;
}

#ifdef TTS_WITH_TORCH
void show_gpu_memory(observability::Metrics& metrics) {
  for (const auto& gpu : model::gpu_memory()) metrics.set_gpu_memory(gpu.device, gpu.used_bytes);
}
#else
void show_gpu_memory(observability::Metrics&) {}
#endif

}  // namespace

#ifdef TTS_WITH_TORCH
LoadedParts load_parts(const config::Config& config, const std::filesystem::path& program) {
  LoadedParts parts;
  parts.manifest = engine::read_manifest(config::find_model(config.model_dir, program));
  parts.front_end = text::load_front_end(parts.manifest);
  auto loaded = model::load_model(parts.manifest, config.model);
  parts.engines = std::move(loaded.engines);
  parts.voices = std::move(loaded.voices);
  return parts;
}
#else
LoadedParts load_parts(const config::Config&, const std::filesystem::path&) {
  throw std::runtime_error("this build has no model module; configure with -DTTS_WITH_TORCH=ON to speak");
}
#endif

Speech::Speech(LoadedParts parts, const config::Config& config)
    : config_(config), manifest_(std::move(parts.manifest)), front_end_(std::move(parts.front_end)), voices_(std::move(parts.voices)) {
  const auto sample_rate = parts.engines.front()->info().sample_rate;
  metrics_.set_limit("max_batch", config.engine.max_batch);
  metrics_.set_limit("max_queue", config.engine.max_queue);
  metrics_.set_limit("max_requests", config.synthesis.max_requests);
  metrics_.set_limit("max_connections", static_cast<double>(config.server.http.max_connections));
  metrics_.set_limit("max_text_chars", config.synthesis.max_text_chars);
  std::vector<engine::UtteranceEngine*> engines;
  for (auto& engine : parts.engines) {
    schedulers_.push_back(std::make_unique<scheduling::Scheduler>(std::move(engine), config.engine, clock_, metrics_));
    engines.push_back(schedulers_.back().get());
  }
  metrics_.set_build_info(TTS_VERSION, manifest_.name, device_list(schedulers_), schedulers_.front()->info().precision);
  pool_ = std::make_unique<dispatch::EnginePool>(std::move(engines));
  metrics_.before_render([this] {
    const auto load = pool_->load();
    metrics_.set_capacity(load.realtime_streams, load.expected_wait);
    show_gpu_memory(metrics_);
  });
  service_ = std::make_unique<synthesis::Service>(synthesis::ServiceParts{.engine = *pool_,
                                                                          .front_end = *front_end_,
                                                                          .voices = voices_,
                                                                          .sampling = manifest_.sampling,
                                                                          .sample_rate = sample_rate,
                                                                          .clock = clock_,
                                                                          .metrics = metrics_},
                                                  config.synthesis);
}

std::string Speech::devices() const {
  const auto& precision = schedulers_.front()->info().precision;
  return device_list(schedulers_) + (precision.empty() ? "" : ", " + precision);
}

api::Catalog Speech::catalog() const {
  api::Catalog catalog;
  catalog.version = TTS_VERSION;
  catalog.model = manifest_.name;
  catalog.model_title = manifest_.title;
  catalog.license = manifest_.license;
  for (const auto& voice : voices_) catalog.voices.push_back({voice.id, voice.title, voice.gender, voice.languages});
  catalog.default_voice = manifest_.default_voice;
  catalog.sample_rate = manifest_.architecture.sample_rate;
  catalog.sampling = manifest_.sampling;
  catalog.max_text_chars = config_.synthesis.max_text_chars;
  catalog.max_timeout_ms = static_cast<std::uint32_t>(config_.request_timeout.count());
  catalog.styles = manifest_.front_end == engine::TextFrontEndKind::kChattts;
  catalog.refine = front_end_->has_refine();
  catalog.openai = config_.openai;
  return catalog;
}

}  // namespace tts::app
