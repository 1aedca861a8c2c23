#include "say.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tts/api/speech_api.h"

#include "composition.h"
#include "pull.h"

namespace tts::app {
namespace {

std::string format_of(const SayArguments& arguments) {
  if (!arguments.format.empty()) return arguments.format;
  if (arguments.output == "-") return "wav";
  auto extension = std::filesystem::path(arguments.output).extension().string();
  if (!extension.empty()) extension.erase(0, 1);
  if (extension == "ogg") extension = "opus";
  if (!audio::parse_container(extension)) {
    throw std::runtime_error("cannot tell the format from '" + arguments.output +
                             "'; name the file .wav, .mp3, .flac, .opus or .pcm, or use --format");
  }
  return extension;
}

std::string text_of(const SayArguments& arguments) {
  if (arguments.text) return *arguments.text;
  if (isatty(STDIN_FILENO) != 0) std::cerr << "Type the text, end with Ctrl-D.\n";
  std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// The same body a client would send, so that the same checks and messages apply.
std::string body_of(const SayArguments& arguments, const std::string& text, const std::string& format) {
  nlohmann::json body{{"text", text}, {"format", format}};
  if (arguments.voice) body["voice"] = *arguments.voice;
  if (arguments.speed) body["speed"] = *arguments.speed;
  if (arguments.seed) body["seed"] = *arguments.seed;
  try {
    return body.dump();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error("the text is not valid UTF-8");
  }
}

// Opened before the work, so that a path that cannot be written is said at once; what was there stays until there is something to write.
class Output {
 public:
  explicit Output(const std::string& name) : name_(name) {
    if (name == "-") return;
    std::error_code ignored;
    is_new_ = !std::filesystem::exists(name, ignored);
    file_.open(name, std::ios::binary | std::ios::app);
    if (!file_) throw std::runtime_error("cannot write " + name);
  }
  ~Output() {
    std::error_code ignored;
    if (is_new_ && !begun_) std::filesystem::remove(name_, ignored);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(const resume::Packet& packet) {
    auto& stream = name_ == "-" ? std::cout : static_cast<std::ostream&>(file_);
    if (std::error_code not_a_file; !std::exchange(begun_, true) && name_ != "-") std::filesystem::resize_file(name_, 0, not_a_file);
    stream.write(reinterpret_cast<const char*>(packet.bytes.data()), static_cast<std::streamsize>(packet.bytes.size()));
    stream.flush();
    if (!stream) throw std::runtime_error("cannot write to " + (name_ == "-" ? std::string("standard output") : name_));
  }

 private:
  std::string name_;
  std::ofstream file_;
  bool is_new_ = false;
  bool begun_ = false;
};

}  // namespace

int say(const SayArguments& arguments, const config::Config& config, const std::filesystem::path& program) {
  using Seconds = std::chrono::duration<double>;
  const auto format = format_of(arguments);
  const auto text = text_of(arguments);
  const auto body = body_of(arguments, text, format);
  Output output(arguments.output);
  Speech speech(load_parts(config, program), config);
  auto call = api::SpeechApi(speech.catalog()).parse_native(body);
  if (!call) throw std::runtime_error(call.error().message);
  call->request.request_id = "say";
  call->request.whole = arguments.output != "-";  // a file gets headers with true sizes; a pipe gets sound at once
  const auto rate = static_cast<double>(call->request.format.sample_rate);

  const auto begun = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return Seconds(std::chrono::steady_clock::now() - begun).count(); };
  auto started = speech.service().start(std::move(call->request));
  if (!started) throw std::runtime_error(started.error().message);
  auto& synthesis = **started;

  const bool show_progress = isatty(STDERR_FILENO) != 0;
  double first_sound = 0;
  const auto tick = [&] {
    const auto audio = static_cast<double>(synthesis.report().samples) / rate;
    if (audio <= 0) return;
    if (first_sound == 0) first_sound = elapsed();
    if (show_progress) std::cerr << fmt::format("\r{:.1f} s of audio, RTF {:.2f} ", audio, elapsed() / audio) << std::flush;
  };
  const auto status = pull(synthesis, [&output](const resume::Packet& packet) { output.write(packet); }, tick);
  if (show_progress) std::cerr << '\r';
  if (!status) throw std::runtime_error(status.error().message);

  const auto report = synthesis.report();
  const auto audio = static_cast<double>(report.samples) / rate;
  std::cerr << fmt::format("{}: {:.2f} s of audio in {:.2f} s (RTF {:.3f}), first sound after {:.0f} ms, seed {}\n",
                           arguments.output == "-" ? "standard output" : arguments.output, audio, report.total.count(),
                           report.total.count() / audio, first_sound * 1000, synthesis.seed());
  for (const auto& dropped : report.dropped) std::cerr << "not spoken: " << dropped << '\n';
  return 0;
}

}  // namespace tts::app
