#include "validate.h"

#include <algorithm>

namespace tts::scheduling {

std::vector<std::string> problems(const SchedulerOptions& options, const engine::EngineInfo& info) {
  std::vector<std::string> found;
  const auto require = [&](bool fine, std::string what) {
    if (!fine) found.push_back(std::move(what));
  };
  require(options.max_batch > 0, "max_batch must be at least 1");
  require(options.max_batch <= info.max_slots,
          "max_batch " + std::to_string(options.max_batch) + " exceeds the engine's " + std::to_string(info.max_slots) + " slots");
  require(options.max_batch <= info.max_rows_per_step, "max_batch " + std::to_string(options.max_batch) + " exceeds the engine's " +
                                                           std::to_string(info.max_rows_per_step) + " rows per step");
  require(options.max_queue > 0, "max_queue must be at least 1");
  require(options.max_wait.count() >= 0, "max_wait must not be negative");
  require(options.max_load_percent > 0 && options.max_load_percent <= 100, "max_load_percent must be from 1 to 100");
  require(options.max_lead.count() > 0, "max_lead must be positive");
  require(options.lookahead > 0, "lookahead must be at least 1");
  require(options.exact_within.count() >= 0, "exact_within must not be negative");
  require(options.batch_window.count() >= 0, "batch_window must not be negative");
  require(options.prefill_chunk > 0, "prefill_chunk must be at least 1");
  require(options.chunk_steps > 0, "chunk_steps must be at least 1");
  require(std::find(options.chunk_ramp.begin(), options.chunk_ramp.end(), 0U) == options.chunk_ramp.end(),
          "every chunk_ramp entry must be at least 1");
  require(info.max_pending_steps > 0, "the engine holds no pending steps");
  require(options.park_after.count() >= 0, "park_after must not be negative");
  require(options.stop_grace.count() >= 0, "stop_grace must not be negative");
  require(options.max_failures_in_a_row > 0, "max_failures_in_a_row must be at least 1");
  require(options.failure_cooldown.count() >= 0, "failure_cooldown must not be negative");
  require(options.hang_limit.count() > 0, "hang_limit must be positive");
  return found;
}

}  // namespace tts::scheduling
