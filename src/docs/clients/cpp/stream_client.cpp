// Speaks text over the WebSocket of chattts-server and writes a WAV file; goes on where it was when the link breaks. The protocol is
// described in websocket.md. Built with -DTTS_BUILD_EXAMPLES=ON, or alone, on Debian 12:
//
//   apt-get install g++ libboost1.81-dev nlohmann-json3-dev
//   g++ -std=c++20 -O2 stream_client.cpp -o stream_client -pthread
//   ./stream_client "Nice to meet you. 今天天气很好。" -o hello.wav

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>
#include <nlohmann/json.hpp>

namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using boost::asio::ip::tcp;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr const char* kHelp = R"(usage: stream_client TEXT -o FILE [options]

  -o FILE               the WAV file to write
  --host NAME           of the server (default: 127.0.0.1)
  --port NUMBER         of the server (default: 8080)
  --voice ID            of GET /v1/voices
  --seed NUMBER         the same seed gives the same audio
  --break-after FRAMES  cut the link once after so many frames, to see it mended
  --help
)";

constexpr const char* kContext = "speech";  // this client has one utterance, so one context
constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kMostText = 16 * 1024;  // bytes in a message

struct Options {
  std::string text, output, host = "127.0.0.1", port = "8080";
  std::optional<std::string> voice;
  std::optional<std::uint64_t> seed;
  std::optional<std::uint64_t> break_after;
};

struct GaveUp : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct BrokenLink : std::runtime_error {
  BrokenLink(const std::string& why, Seconds what_the_server_asked_for) : std::runtime_error(why), wait(what_the_server_asked_for) {}
  Seconds wait;
};

std::uint64_t little_endian(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

bool is_inside_a_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Where so many code points of UTF-8 end.
std::size_t bytes_of(std::string_view text, std::uint64_t characters) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (!is_inside_a_character(text[at]) && characters-- == 0) break;
  }
  return at;
}

class Client {
 public:
  explicit Client(const Options& options) : options_(options), frames_until_break_(options.break_after) {}

  // Three steps when the link breaks: again at once; again after about two seconds; give up. What the server asks for is waited first. A
  // frame of audio counts as success: then it begins anew.
  void run() {
    while (!finished_) {
      try {
        one_socket();
      } catch (const BrokenLink& broken) {
        if (++attempts_ > 2) throw GaveUp(std::string(broken.what()) + "; tried again at once and after a while");
        Seconds wait = broken.wait;
        if (attempts_ == 2) wait += Seconds(std::uniform_real_distribution<double>(1.6, 2.4)(random_));
        std::cerr << broken.what() << "; trying again in " << wait.count() << " s\n";
        std::this_thread::sleep_for(wait);
      }
    }
  }

  bool has_sound() const { return !sound_.empty(); }

  void save() const {
    std::ofstream file(options_.output, std::ios::binary);
    const auto put = [&](std::uint64_t value, std::size_t bytes) {
      for (std::size_t i = 0; i < bytes; ++i) file.put(static_cast<char>(value >> (8 * i)));
    };
    file << "RIFF";
    put(36 + sound_.size(), 4);
    file << "WAVEfmt ";
    put(16, 4);
    put(1, 2);
    put(1, 2);
    put(rate_, 4);
    put(2 * rate_, 4);
    put(2, 2);
    put(16, 2);
    file << "data";
    put(sound_.size(), 4);
    file << sound_;
    if (!file.flush()) throw GaveUp("cannot write " + options_.output);
  }

 private:
  using Socket = websocket::stream<tcp::socket>;

  void one_socket() {
    boost::asio::io_context io;
    Socket socket(io);
    try {
      boost::asio::connect(socket.next_layer(), tcp::resolver(io).resolve(options_.host, options_.port));
      socket.next_layer().set_option(tcp::no_delay(true));
      shake_hands(socket);
      const bool resuming = !session_.empty();
      if (resuming) send(socket, {{"type", "resume"}, {"session", session_}, {"token", token_}, {"seq", last_seq_}});
      receive(socket, resuming);
      boost::system::error_code ignored;
      socket.close(websocket::close_code::normal, ignored);
    } catch (const boost::system::system_error& error) {
      if (error.code() != websocket::error::closed) throw BrokenLink(error.what(), Seconds(0));
      const auto code = static_cast<unsigned>(socket.reason().code);
      const std::string why = std::string(socket.reason().reason.c_str()) + " (" + std::to_string(code) + ")";
      if (code == 1011 || code == 4008) throw BrokenLink(why, Seconds(0));
      if (code == 1012 || code == 1013) throw BrokenLink(why, Seconds(1));
      throw GaveUp("closed: " + why);
    }
  }

  void shake_hands(Socket& socket) {
    socket.set_option(websocket::stream_base::decorator(
        [](websocket::request_type& request) { request.set(http::field::sec_websocket_protocol, "tts.v1"); }));
    websocket::response_type response;
    boost::system::error_code error;
    socket.handshake(response, options_.host + ":" + options_.port, "/v1/stream", error);
    if (!error) return;
    if (error != websocket::error::upgrade_declined) throw boost::system::system_error(error);
    const std::string why = "the server answered " + std::to_string(response.result_int());
    if (response.result_int() != 429 && response.result_int() != 503) throw GaveUp(why);
    const auto advice = response[http::field::retry_after];
    throw BrokenLink(why, Seconds(std::atof(std::string(advice.data(), advice.size()).c_str())));
  }

  void receive(Socket& socket, bool resuming) {
    beast::flat_buffer buffer;
    auto acknowledged_at = Clock::now();
    while (!finished_) {
      buffer.clear();
      socket.read(buffer);  // answers pings on the way
      const auto* const bytes = static_cast<const std::uint8_t*>(buffer.data().data());
      if (socket.got_text()) {
        take_message(socket, json::parse(bytes, bytes + buffer.size()), resuming);
      } else {
        take_frame({reinterpret_cast<const char*>(bytes), buffer.size()});
        if (frames_until_break_ && --*frames_until_break_ == 0) {
          std::cerr << "the link is cut, as --break-after asks for\n";
          frames_until_break_.reset();
          socket.next_layer().close();
        }
      }
      if (Clock::now() - acknowledged_at > std::chrono::seconds(1) && socket.next_layer().is_open()) {
        acknowledged_at = Clock::now();
        send(socket, {{"type", "ack"}, {"seq", last_seq_}});
      }
    }
  }

  void take_frame(std::string_view frame) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(frame.data());
    if (frame.size() < kHeaderBytes || bytes[0] != 1) throw GaveUp("frames of this version are not known here");
    const auto seq = static_cast<std::uint32_t>(little_endian(bytes + 4, 4));
    if (seq != last_seq_ + 1) throw GaveUp("frame " + std::to_string(seq) + " came after " + std::to_string(last_seq_));
    last_seq_ = seq;
    attempts_ = 0;
    // Each sample once, at its place: a gap that nothing can fill is silence.
    const std::uint64_t place = 2 * little_endian(bytes + 8, 8);
    frame.remove_prefix(kHeaderBytes);
    if (place > sound_.size()) sound_.resize(place, '\0');
    if (sound_.size() - place < frame.size()) sound_.append(frame.substr(sound_.size() - place));
  }

  void take_message(Socket& socket, const json& message, bool resuming) {
    const auto& type = message.at("type").get_ref<const std::string&>();
    if (type == "ready" && !resuming) {
      session_ = message.at("session");
      token_ = message.at("resume_token");
      send_start(socket);
      send_text(socket, options_.text, true);
    } else if (type == "started") {
      started_ = true;
      rate_ = message.at("sample_rate");
    } else if (type == "sentence") {
      const auto begin = bytes_of(options_.text, message.at("begin")), end = bytes_of(options_.text, message.at("end"));
      std::cerr << "  " << options_.text.substr(begin, end - begin) << "\n";
    } else if (type == "done") {
      finished_ = true;
      std::cerr << "done: " << message.at("characters") << " characters spoken in " << message.at("samples") << " samples\n";
    } else if (type == "error") {
      const std::string why = message.at("message");
      if (message.contains("retry_after_ms") && !started_) {
        session_.clear();  // from the beginning, later
        throw BrokenLink(why, std::chrono::milliseconds(message.at("retry_after_ms").get<std::uint64_t>()));
      }
      if (message.value("ended", true)) throw GaveUp(message.at("code").get<std::string>() + ": " + why);
      std::cerr << "the server says: " << why << "\n";
    } else if (type == "resumed" || type == "resume_gap") {
      std::cerr << type << ": frame " << message.at("from") << " comes next\n";
      last_seq_ = message.at("from").get<std::uint32_t>() - 1;
      go_on(socket, message.at("contexts"));
    } else if (type == "resume_unknown" || type == "resume_expired") {
      throw GaveUp("the session is over");
    } else if (type == "draining") {
      std::cerr << "the server stops within " << message.at("deadline_ms") << " ms\n";
    }
  }

  // Sends again what the link has lost.
  void go_on(Socket& socket, const json& contexts) {
    for (const auto& context : contexts) {
      if (context.at("context") != kContext) continue;
      const auto arrived = bytes_of(options_.text, context.at("characters"));
      return send_text(socket, std::string_view(options_.text).substr(arrived), !context.at("ended").get<bool>());
    }
    if (started_) return;  // only its last words are still to come
    send_start(socket);
    send_text(socket, options_.text, true);
  }

  void send_start(Socket& socket) {
    json message{{"type", "start"}, {"context", kContext}, {"format", "pcm_s16le"}};
    if (options_.voice) message["voice"] = *options_.voice;
    if (options_.seed) message["seed"] = *options_.seed;
    send(socket, message);
  }

  void send_text(Socket& socket, std::string_view text, bool end) {
    while (!text.empty()) {
      std::size_t size = std::min(text.size(), kMostText);
      while (size < text.size() && is_inside_a_character(text[size])) --size;
      send(socket, {{"type", "text"}, {"context", kContext}, {"text", text.substr(0, size)}});
      text.remove_prefix(size);
    }
    if (end) send(socket, {{"type", "end"}, {"context", kContext}});
  }

  static void send(Socket& socket, const json& message) {
    socket.text(true);
    socket.write(boost::asio::buffer(message.dump()));
  }

  const Options options_;
  std::string session_, token_;
  std::uint32_t last_seq_ = 0, rate_ = 24000;
  int attempts_ = 0;  // to mend the link, since the last frame
  bool started_ = false, finished_ = false;
  std::optional<std::uint64_t> frames_until_break_;
  std::string sound_;  // samples of 16 bits
  std::mt19937 random_{std::random_device{}()};
};

std::uint64_t number(const std::string& name, const std::string& text) {
  std::size_t used = 0;
  try {
    if (const auto value = std::stoull(text, &used); used == text.size() && text.front() != '-') return value;
  } catch (const std::logic_error&) {
  }
  throw std::invalid_argument(name + " takes a whole number, not '" + text + "'");
}

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = words[i];
    if (name == "--help") {
      std::cout << kHelp;
      std::exit(0);
    }
    if (!name.starts_with("-")) {
      if (!options.text.empty()) throw std::invalid_argument("put the text in quotes");
      options.text = name;
      continue;
    }
    if (i + 1 == count) throw std::invalid_argument(name + " needs a value, or is unknown");
    const std::string value = words[++i];
    if (name == "-o") {
      options.output = value;
    } else if (name == "--host") {
      options.host = value;
    } else if (name == "--port") {
      options.port = value;
    } else if (name == "--voice") {
      options.voice = value;
    } else if (name == "--seed") {
      options.seed = number(name, value);
    } else if (name == "--break-after") {
      options.break_after = number(name, value);
    } else {
      throw std::invalid_argument(name + " is unknown");
    }
  }
  if (options.text.empty()) throw std::invalid_argument("say what to speak");
  if (options.output.empty()) throw std::invalid_argument("say where the audio goes: -o FILE");
  return options;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  try {
    options = read_options(count, words);
  } catch (const std::invalid_argument& wrong) {
    std::cerr << wrong.what() << "\n\n" << kHelp;
    return 2;
  }
  Client client(options);
  int status = 0;
  try {
    client.run();
  } catch (const std::exception& failed) {
    std::cerr << "gave up: " << failed.what() << "\n";
    status = 1;
  }
  try {
    if (client.has_sound()) client.save();
  } catch (const GaveUp& failed) {
    std::cerr << failed.what() << "\n";
    status = 1;
  }
  return status;
}
