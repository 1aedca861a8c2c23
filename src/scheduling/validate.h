#pragma once

#include <string>
#include <vector>

#include "tts/engine/step_engine.h"
#include "tts/scheduling/scheduler.h"

namespace tts::scheduling {

// Everything about the options that this engine cannot do, one sentence each; empty = all is well.
std::vector<std::string> problems(const SchedulerOptions& options, const engine::EngineInfo& info);

}  // namespace tts::scheduling
