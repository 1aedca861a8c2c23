#pragma once
// Several engines behind one: chooses the least loaded healthy one and keeps its promise to the sink.

#include <memory>
#include <vector>

#include "tts/engine/utterance_engine.h"

namespace tts::dispatch {

// Engines are not owned and must outlive the pool; none is called after the pool's end. The shortest expected wait wins, then the least
// (queued + active) over what an engine serves at real time, then the first. But what follows an utterance of the same listener that is
// not over goes to the same engine: only there do the two count as one stream. An utterance that fails with kEngineFailure before its
// first sample is submitted once more, to another engine if there is one.
class EnginePool final : public engine::UtteranceEngine {
 public:
  explicit EnginePool(std::vector<engine::UtteranceEngine*> engines);
  ~EnginePool() override;

  Result<engine::UtteranceId> submit(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink) override;
  void cancel(engine::UtteranceId id) noexcept override;
  void set_paused(engine::UtteranceId id, bool paused) noexcept override;
  void set_runs_dry_at(engine::UtteranceId id, TimePoint when) noexcept override;
  // Sums. Of the engines that are ready: the shortest wait, and real-time streams, unknown until all of them know theirs.
  engine::EngineLoad load() const override;
  engine::EngineHealth health() const override;  // ready when any engine is

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tts::dispatch
