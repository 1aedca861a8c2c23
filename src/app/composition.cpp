#include "composition.h"

#include <stdexcept>
#include <utility>

namespace tts::app {

#ifdef TTS_WITH_TORCH
LoadedParts load_parts(const config::Config& config, const std::filesystem::path& program) {
  LoadedParts parts;
  parts.manifest = engine::read_manifest(config::find_model(config.model_dir, program));
  parts.front_end = text::load_front_end(parts.manifest);
  auto loaded = model::load_model(parts.manifest, config.model);
  parts.engine = std::move(loaded.engine);
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
  const auto info = parts.engine->info();
  metrics_.set_build_info(TTS_VERSION, info.model, info.device, info.precision);
  metrics_.set_limit("max_batch", config.engine.max_batch);
  metrics_.set_limit("max_queue", config.engine.max_queue);
  metrics_.set_limit("max_requests", config.synthesis.max_requests);
  metrics_.set_limit("max_connections", static_cast<double>(config.server.http.max_connections));
  metrics_.set_limit("max_text_chars", config.synthesis.max_text_chars);
  scheduler_ = std::make_unique<scheduling::Scheduler>(std::move(parts.engine), config.engine, clock_, metrics_);
  pool_ = std::make_unique<dispatch::EnginePool>(std::vector<engine::UtteranceEngine*>{scheduler_.get()});
  metrics_.before_render([this] {
    const auto load = pool_->load();
    metrics_.set_capacity(load.realtime_streams, load.expected_wait);
  });
  service_ = std::make_unique<synthesis::Service>(synthesis::ServiceParts{.engine = *pool_,
                                                                          .front_end = *front_end_,
                                                                          .voices = voices_,
                                                                          .sampling = manifest_.sampling,
                                                                          .sample_rate = info.sample_rate,
                                                                          .clock = clock_,
                                                                          .metrics = metrics_},
                                                  config.synthesis);
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
