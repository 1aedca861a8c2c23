#pragma once

#include "bench.h"

namespace CLI {
class App;
}

namespace tts::app {

// Adds the flags of the role to `role`; what was given lands in `arguments`, which must live until parsing is over.
void add_bench_flags(CLI::App& role, BenchArguments& arguments);

}  // namespace tts::app
