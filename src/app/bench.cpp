#include "bench.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/engine_share.h"
#include "bench/http_client.h"
#include "bench/report.h"
#include "local_server.h"
#include "source_commit.h"

namespace tts::app {
namespace {

double cpu_seconds(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Results go to standard output, what is going on to standard error.
class Terminal final : public bench::Screen {
 public:
  void line(const std::string& text) override {
    clear();
    std::cout << text << (text.ends_with('\n') ? "" : "\n") << std::flush;
  }
  void progress(const std::string& text) override {
    if (!is_terminal_) return say_now_and_then(text);
    clear();
    std::cerr << text << std::flush;
    shown_ = true;
  }
  void clear() {
    if (std::exchange(shown_, false)) std::cerr << "\r\033[K";
  }

 private:
  void say_now_and_then(const std::string& text) {
    constexpr auto kEvery = std::chrono::seconds(10);
    const auto now = std::chrono::steady_clock::now();
    if (now - said_ < kEvery) return;
    said_ = now;
    std::cerr << text << '\n';
  }

  const bool is_terminal_ = isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
  std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();
};

// Opened before the work, so that a path that cannot be written is said at once.
std::ofstream open_output(const std::filesystem::path& path) {
  std::ofstream stream;
  if (path.empty()) return stream;
  stream.open(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot write " + path.string());
  return stream;
}

void write_output(std::ofstream& stream, const std::filesystem::path& path, const std::string& content) {
  if (path.empty()) return;
  stream << content << std::flush;
  if (!stream) throw std::runtime_error("cannot write " + path.string());
  std::cout << "written: " << path.string() << '\n';
}

// What the configuration changes, wherever it says so. Folders are named without where they lie: reports get published.
nlohmann::ordered_json changed_settings(const config::LoadedConfig& loaded) {
  const auto now = nlohmann::json::parse(config::describe(loaded)),
             usual = nlohmann::json::parse(config::describe(config::load_config({})));
  nlohmann::ordered_json changed = nlohmann::ordered_json::object();
  for (const auto& [section, settings] : now.items()) {
    for (const auto& [name, setting] : settings.items()) {
      if (setting["value"] != usual[section][name]["value"]) changed[section + "." + name] = setting["value"];
    }
  }
  if (changed.contains("model.dir")) {
    const auto& dir = loaded.config.model_dir;
    changed["model.dir"] = (dir.has_filename() ? dir : dir.parent_path()).filename().string();  // "models/x" and "models/x/"
  }
  return changed;
}

}  // namespace

int bench(const BenchArguments& arguments, const config::LoadedConfig& loaded, const std::filesystem::path& program) {
  auto output = open_output(arguments.output), plot = open_output(arguments.plot);
  bench::Report report;
  report.version = TTS_VERSION;
  report.commit = kSourceCommit;
  report.build = TTS_BUILD;
  report.date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  report.machine = bench::this_machine();
  Terminal terminal;

  auto config = loaded.config;
  std::unique_ptr<LocalServer> own;
  bench::ServerProbe probe;
  if (arguments.url.empty()) {
    config.server.http.host = config.server.admin.host = "127.0.0.1";
    config.server.http.port = config.server.admin.port = 0;
    std::cerr << "loading the model\n";
    own = std::make_unique<LocalServer>(config, program);
    own->warm_up();
    own->open();
    probe.cpu_seconds = [] { return cpu_seconds(RUSAGE_SELF) - cpu_seconds(RUSAGE_THREAD); };
    probe.metrics = [&metrics = own->speech().metrics()] { return metrics.render(); };
    report.settings = changed_settings(loaded);
  } else if (!arguments.admin_url.empty()) {
    probe.metrics = [admin = bench::parse_server(arguments.admin_url)] { return bench::get(admin, "/metrics"); };
  }
  if (probe.metrics) report.precision = bench::metric_label(probe.metrics(), "tts_build_info", "precision");
  report.target = own ? "in this process" : arguments.url;

  const auto server = bench::parse_server(own ? own->url() : arguments.url);
  bench::Session session(server, arguments.plan, probe, terminal);
  report.model = session.model();
  report.workload = session.workload();
  terminal.line(bench::heading(report));
  if (arguments.plan.find_capacity) {
    report.capacity = session.capacity();
    terminal.line(fmt::format("{} streams at once without a silence", report.capacity->streams));
  } else {
    report.levels = session.levels();
  }
  terminal.clear();
  if (own) {
    report.memory = bench::memory_of_this_process();
    terminal.line(fmt::format("memory: {:.0f} MiB resident, {:.0f} at the peak, the listeners included", report.memory->resident_mib,
                              report.memory->peak_mib));
    own->speech().service().stop_accepting();
    own->http().stop();
  }
  write_output(output, arguments.output, to_json(report).dump(1) + "\n");
  write_output(plot, arguments.plot, bench::plot(report));
  const bool failed =
      std::any_of(report.levels.begin(), report.levels.end(), [](const auto& level) { return level.failed > 0 || level.unfinished > 0; });
  return failed ? 1 : 0;
}

}  // namespace tts::app
