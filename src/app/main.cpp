// Parses the command line and calls a role.

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include "tts/config/config.h"

#include "bench.h"
#include "bench_flags.h"
#include "say.h"
#include "serve.h"

namespace {

namespace fs = std::filesystem;
using tts::app::BenchArguments;
using tts::app::SayArguments;

constexpr const char* kDefaultFile = "config/server.json";

constexpr const char* kExamples = R"(Examples:
  chattts-server                                   serve on http://127.0.0.1:8080/
  chattts-server serve --host 0.0.0.0 --port 80    serve other machines
  chattts-server say "你好，世界。" -o hello.mp3     text to a file
  echo Hello | chattts-server say -o - | aplay     text to the speaker
  chattts-server bench --plot load.svg             how many listeners this machine serves, and how soon they hear something
  chattts-server check --config my.json            what would be in force, and why

A value comes from, strongest first: a flag, the environment (TTS_SERVER_PORT=80), the configuration file, the default.
`chattts-server serve --help` lists everything that can be set.)";

struct CommandLine {
  std::string config_file;
  std::map<std::string, std::string> flags;
  SayArguments say;
  BenchArguments bench;
  bool print_defaults = false, print_table = false;
};

// serve is the default role: `chattts-server --port 80` means `chattts-server serve --port 80`.
std::vector<std::string> with_role(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto is_own = [](const std::string& text) { return text == "-h" || text == "--help" || text == "--version"; };
  if (arguments.empty() || (arguments.front().starts_with("-") && !is_own(arguments.front()))) arguments.insert(arguments.begin(), "serve");
  return {arguments.rbegin(), arguments.rend()};  // CLI11 takes them last first
}

void add_common(CLI::App& role, CommandLine& line, std::span<const std::string_view> sections) {
  role.add_option("--config", line.config_file, "configuration file [config/server.json if it is there]")->type_name("FILE");
  tts::config::add_flags(role, line.flags, sections);
}

// Text for standard output, which may be a full disk or a reader that left.
int print(const std::string& text) {
  std::cout << text << std::flush;
  if (std::cout) return 0;
  std::cerr << "chattts-server: cannot write to standard output\n";
  return 1;
}

void add_say(CLI::App& role, CommandLine& line) {
  auto& say = line.say;
  role.add_option("text", say.text, "what to say; absent = read standard input")->type_name("TEXT");
  role.add_option("-o,--output", say.output, "file (.wav .mp3 .flac .opus .pcm), or - for standard output")->required()->type_name("FILE");
  role.add_option("--format", say.format, "wav, mp3, flac, opus or pcm [from the file's extension]")->type_name("NAME");
  role.add_option("--voice", say.voice, "voice id")->type_name("ID");
  role.add_option("--speed", say.speed, "0.5 to 2 [1]")->type_name("X");
  role.add_option("--seed", say.seed, "same seed, same audio [random]")->type_name("N");
}

tts::config::Sources sources_of(const CommandLine& line) {
  tts::config::Sources sources;
  std::error_code error;
  if (!line.config_file.empty()) {
    sources.file = line.config_file;
  } else if (fs::exists(kDefaultFile, error)) {
    sources.file = kDefaultFile;
  }
  sources.environment = tts::config::read_environment();
  sources.flags = line.flags;
  return sources;
}

fs::path own_path(const char* argv0) {
  std::error_code error;
  auto path = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::absolute(argv0) : path;
}

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App app("chattts-server " TTS_VERSION ": text to speech, streamed, with ChatTTS models.", "chattts-server");
  app.set_version_flag("--version", "chattts-server " TTS_VERSION);
  app.require_subcommand(1);
  app.footer(kExamples);
  auto* serve = app.add_subcommand("serve", "serve HTTP until SIGTERM or Ctrl-C (the default)");
  auto* say = app.add_subcommand("say", "text to an audio file, without a server");
  auto* bench = app.add_subcommand("bench", "measure: first audio, gaps and throughput under load");
  auto* check = app.add_subcommand("check", "print the effective configuration and where each value comes from");
  constexpr std::array<std::string_view, 4> kSaySections{"model", "engine", "synthesis", "log"};
  add_common(*serve, line, {});
  add_say(*say, line);
  add_common(*say, line, kSaySections);
  tts::app::add_bench_flags(*bench, line.bench);
  add_common(*bench, line, {});
  check->add_flag("--defaults", line.print_defaults, "print a configuration file with every default instead");
  check->add_flag("--table", line.print_table, "print all settings as a Markdown table instead");
  add_common(*check, line, {});
  try {
    app.parse(with_role(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  if (line.print_defaults || line.print_table)
    return print(line.print_defaults ? tts::config::default_file() : tts::config::settings_table());
  const auto sources = sources_of(line);
  auto loaded = tts::config::load_config(sources);
  if (check->parsed()) {
    for (const auto& warning : loaded.warnings) std::cerr << "warning: " << warning << '\n';
    return print(tts::config::describe(loaded) + '\n');
  }
  auto log = loaded.config.log;
  if (!serve->parsed() && !sources.flags.contains("log.level") && !sources.environment.contains("TTS_LOG_LEVEL")) log.level = "warning";
  tts::observability::configure_logging(log);
  if (sources.file) spdlog::info("configuration file {}", sources.file->string());
  for (const auto& warning : loaded.warnings) spdlog::warn("{}", warning);
  const auto program = own_path(argv[0]);
  if (bench->parsed()) return tts::app::bench(line.bench, loaded, program);
  return say->parsed() ? tts::app::say(line.say, loaded.config, program) : tts::app::serve(loaded.config, program);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error of the write, not the end of the process
  try {
    const int status = run(argc, argv);
#ifdef TTS_WITH_TORCH
    // Everything of ours has ended; what is left, libtorch's tables of operators, takes over a second to destroy.
    std::cout.flush();
    std::cerr.flush();
    spdlog::shutdown();
    std::_Exit(status);
#else
    return status;  // so that leak checkers see the ordinary end
#endif
  } catch (const tts::config::ConfigError& error) {
    std::cerr << "chattts-server: the configuration is wrong:\n" << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "chattts-server: " << error.what() << '\n';
    return 1;
  }
}
