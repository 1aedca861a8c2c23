#include "settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <type_traits>
#include <utility>

namespace tts::config {
namespace {

using nlohmann::json;

constexpr std::uint64_t kHourMs = 3'600'000;
constexpr std::uint64_t kMebibyte = 1024 * 1024;

template <class T>
struct IsDuration : std::false_type {};
template <class Rep, class Period>
struct IsDuration<std::chrono::duration<Rep, Period>> : std::true_type {};

// `member` maps a Config to the variable it sets, const or not.
template <class Member>
void bind(Setting& setting, Member member) {
  using T = std::remove_reference_t<decltype(member(std::declval<Config&>()))>;
  setting.get = [member](const Config& config) -> json {
    const T& value = member(config);
    if constexpr (IsDuration<T>::value) {
      return static_cast<std::uint64_t>(value.count());
    } else if constexpr (std::is_same_v<T, int>) {
      return static_cast<std::uint64_t>(value);
    } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
      return value.string();
    } else {
      return value;
    }
  };
  setting.set = [member](Config& config, const json& value) {
    if constexpr (IsDuration<T>::value) {
      member(config) = T(value.get<typename T::rep>());
    } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
      member(config) = value.get<std::string>();
    } else {
      member(config) = value.get<T>();
    }
  };
}

std::string flag_of(std::string_view section, std::string_view name) {
  if (section == "model" && name == "dir") return "--model";
  std::string flag = "--";
  if (section == "admin" || section == "log" || section == "openai" || section == "stream") flag.append(section).append("-");
  flag.append(name);
  std::replace(flag.begin() + 2, flag.end(), '_', '-');
  return flag;
}

class Table {
 public:
  template <class Member>
  void integer(std::string section, std::string name, std::uint64_t min, std::uint64_t max, std::string help, Member member) {
    integers(SettingKind::kInteger, std::move(section), std::move(name), min, max, std::move(help), member);
  }
  template <class Member>
  void integers(SettingKind kind, std::string section, std::string name, std::uint64_t min, std::uint64_t max, std::string help,
                Member member) {
    auto& setting = add(kind, std::move(section), std::move(name), std::move(help));
    setting.min = min;
    setting.max = max;
    bind(setting, member);
  }
  template <class Member>
  void number(std::string section, std::string name, double least, double most, std::string help, Member member) {
    auto& setting = add(SettingKind::kNumber, std::move(section), std::move(name), std::move(help));
    setting.least = least;
    setting.most = most;
    bind(setting, member);
  }
  template <class Member>
  void other(SettingKind kind, std::string section, std::string name, std::string help, Member member) {
    bind(add(kind, std::move(section), std::move(name), std::move(help)), member);
  }
  Setting& choice(std::string section, std::string name, std::vector<std::string> choices, std::string help) {
    auto& setting = add(SettingKind::kText, std::move(section), std::move(name), std::move(help));
    setting.choices = std::move(choices);
    return setting;
  }
  std::vector<Setting> take() { return std::move(rows_); }

 private:
  Setting& add(SettingKind kind, std::string section, std::string name, std::string help) {
    Setting setting;
    setting.flag = flag_of(section, name);
    setting.section = std::move(section);
    setting.name = std::move(name);
    setting.kind = kind;
    setting.help = std::move(help);
    rows_.push_back(std::move(setting));
    return rows_.back();
  }

  std::vector<Setting> rows_;
};

#define TTS_AT(path) [](auto& config) -> auto& { return config.path; }

// How numbers are held; `choices` in the order of NumberFormat, the first ones of it.
template <class Member>
void number_format(Table& table, std::string name, std::vector<std::string> choices, std::string help, Member member) {
  auto& setting = table.choice("model", std::move(name), choices, std::move(help));
  setting.get = [choices, member](const Config& config) -> json { return choices[static_cast<std::size_t>(member(config))]; };
  setting.set = [choices, member](Config& config, const json& value) {
    const auto chosen = std::find(choices.begin(), choices.end(), value.get<std::string>()) - choices.begin();
    member(config) = static_cast<model::NumberFormat>(chosen);
  };
}

void stream_settings(Table& table) {
  constexpr std::uint64_t kGibibyte = 1024 * kMebibyte;
  table.integer("stream", "max_contexts", 1, 1'024, "contexts running in one session; beyond: error too_many_contexts",
                TTS_AT(server.stream.max_contexts));
  table.integer("stream", "max_sockets_per_address", 1, 1'000'000, "sockets from one address; beyond: 429. A proxy is one address",
                TTS_AT(server.stream.max_sockets_per_address));
  table.integer("stream", "max_message_bytes", 1'024, 16 * kMebibyte, "of a client; beyond: closed with 1009",
                TTS_AT(server.socket.max_message_bytes));
  table.integer("stream", "max_wrong_messages", 0, 1'000'000, "of one socket; beyond: closed with 4000",
                TTS_AT(server.stream.max_wrong_messages));
  table.integer("stream", "max_queued_bytes", 4'096, kGibibyte, "of a session, not sent; at the cap it pauses",
                TTS_AT(server.stream.max_queued_bytes));
  table.integer("stream", "max_queued_ms", 100, kHourMs, "audio of a session, not sent; at the cap it pauses", TTS_AT(server.stream.max_queued));
  table.integer("stream", "max_kept_bytes", 0, kGibibyte, "of a session: sent and not acknowledged, or all there is once its socket is gone",
                TTS_AT(server.stream.max_kept_bytes));
  table.integer("stream", "max_kept_bytes_in_all", 0, 1024 * kGibibyte, "of all sessions; beyond: the oldest without a socket end",
                TTS_AT(server.stream.max_kept_bytes_in_all));
  table.integer("stream", "max_waiting_sessions", 0, 1'000'000, "sessions without a socket; beyond: the oldest end",
                TTS_AT(server.stream.max_waiting_sessions));
  table.integer("stream", "resume_ms", 0, kHourMs, "that a session without a socket is kept; 0 = not at all", TTS_AT(server.stream.resume));
  table.integer("stream", "realtime_lead_ms", 100, kHourMs, "sent ahead of what can have been played, with pace realtime",
                TTS_AT(server.stream.realtime_lead));
  table.integer("stream", "drain_spread_ms", 0, kHourMs, "over which idle sockets are closed when the server stops",
                TTS_AT(server.stream.drain_spread));
  table.integer("stream", "ping_interval_ms", 100, kHourMs, "a client from which nothing comes for two of them is gone",
                TTS_AT(server.socket.ping_interval));
  table.integer("stream", "stall_timeout_ms", 100, kHourMs, "nothing leaves for so long: closed with 4008", TTS_AT(server.socket.stall_timeout));
  table.integer("stream", "close_timeout_ms", 100, kHourMs, "for an opening handshake to end, and for a client to answer a closing one",
                TTS_AT(server.socket.close_timeout));
  table.other(SettingKind::kTextList, "stream", "allowed_origins", "web origins whose pages may connect besides the server's own; * = all",
              TTS_AT(server.socket.allowed_origins));
}

void server_settings(Table& table) {
  table.other(SettingKind::kText, "server", "host", "address to listen on, or localhost; 0.0.0.0 lets other machines in", TTS_AT(server.http.host));
  table.integer("server", "port", 0, 65'535, "port for clients; 0 = any free one", TTS_AT(server.http.port));
  table.other(SettingKind::kBoolean, "server", "reuse_port", "other server processes may use the same port; the kernel shares connections out",
              TTS_AT(server.http.reuse_port));
  table.integer("server", "io_threads", 1, 64, "threads that serve connections", TTS_AT(server.io_threads));
  table.integer("server", "max_connections", 1, 100'000, "open client connections; beyond: 503", TTS_AT(server.http.max_connections));
  table.integer("server", "max_header_bytes", 1'024, kMebibyte, "request line and headers; beyond: 431",
                TTS_AT(server.http.max_header_bytes));
  table.integer("server", "max_body_bytes", 1'024, 64 * kMebibyte, "request body; beyond: 413", TTS_AT(server.http.max_body_bytes));
  table.integer("server", "max_body_chunks", 1, 65'536, "chunks of a chunked request body; beyond: 400",
                TTS_AT(server.http.max_body_chunks));
  table.integer("server", "header_timeout_ms", 1, kHourMs, "for a request's headers to arrive", TTS_AT(server.http.header_timeout));
  table.integer("server", "body_timeout_ms", 1, kHourMs, "for a request's body to arrive", TTS_AT(server.http.body_timeout));
  table.integer("server", "idle_timeout_ms", 1, kHourMs, "between two requests of a connection", TTS_AT(server.http.idle_timeout));
  table.integer("server", "write_timeout_ms", 1, kHourMs, "for a client to take the next 64 KiB", TTS_AT(server.http.write_timeout));
  table.integer("server", "linger_timeout_ms", 1, kHourMs, "for a client to read the last reply", TTS_AT(server.http.linger_timeout));
  table.integer("server", "deadline_grace_ms", 1, kHourMs, "after a request's deadline, for the engine to say so",
                TTS_AT(server.http.deadline_grace));
  table.integer("server", "send_buffer_bytes", 4'096, 16 * kMebibyte, "socket send buffer of a connection",
                TTS_AT(server.http.send_buffer_bytes));
  table.other(SettingKind::kText, "server", "cors_origin", "web origin whose pages may call the API, or *; empty = none",
              TTS_AT(server.http.cors_origin));
  table.integer("server", "request_timeout_ms", 1, 24 * kHourMs, "default and maximum of a request's timeout_ms", TTS_AT(request_timeout));
  table.integer("server", "drain_ms", 0, 24 * kHourMs, "for running requests to finish after SIGTERM", TTS_AT(drain));

  table.other(SettingKind::kText, "admin", "host", "address of probes and metrics", TTS_AT(server.admin.host));
  table.integer("admin", "port", 0, 65'535, "port of probes and metrics; 0 = any free one", TTS_AT(server.admin.port));
  table.integer("admin", "max_connections", 1, 100'000, "open admin connections; beyond: 503", TTS_AT(server.admin.max_connections));
}

void latency_setting(Table& table) {
  using scheduling::LatencyMode;
  static constexpr std::array<std::pair<std::string_view, LatencyMode>, 3> kModes{
      {{"auto", LatencyMode::kAuto}, {"low", LatencyMode::kLow}, {"exact", LatencyMode::kExact}}};
  auto& latency = table.choice("engine", "latency", {"auto", "low", "exact"},
                               "first sound early (low), samples equal to offline ones (exact), or what the machine is fast enough for");
  latency.get = [](const Config& config) -> json {
    return std::find_if(kModes.begin(), kModes.end(), [&](const auto& mode) { return mode.second == config.engine.latency; })->first;
  };
  latency.set = [](Config& config, const json& value) {
    config.engine.latency = std::find_if(kModes.begin(), kModes.end(), [&](const auto& mode) { return mode.first == value; })->second;
  };
}

void engine_settings(Table& table) {
  table.other(SettingKind::kText, "model", "dir", "model folder, or its name under models/", TTS_AT(model_dir));
  table.integer("model", "compute_threads", 0, 256, "threads of the model; 0 = one per core that the process may keep busy, at most 8", TTS_AT(model.compute_threads));
  number_format(table, "weights", {"auto", "float32", "bfloat16", "float16", "int8"}, "number format of the language model's weights",
                TTS_AT(model.precision.weights));
  number_format(table, "kv", {"auto", "float32", "bfloat16", "float16", "int8"}, "number format of cached keys and values",
                TTS_AT(model.precision.kv));
  number_format(table, "sound", {"auto", "float32", "bfloat16", "float16"}, "number format of the networks that make sound",
                TTS_AT(model.precision.sound));
  table.integer("model", "prefix_cache_mb", 0, 65'536, "keys and values of voices and styles kept for reuse, MiB; 0 = none",
                TTS_AT(model.prefix_cache_mb));
  table.other(SettingKind::kText, "model", "device",
              "auto (every GPU, else the CPU), cpu, cuda (every GPU), or some: cuda:0,cuda:1; an engine for each", TTS_AT(model.device));
  table.other(SettingKind::kText, "model", "device_map",
              "one engine over several devices: auto, balanced, or layers by name: 0-9:cuda:0,10-18:cuda:1,19:cpu; empty = none",
              TTS_AT(model.device_map));
  table.integer("model", "instances", 1, 8, "engines on each GPU, which share the weights", TTS_AT(model.instances));
  table.number("model", "gpu_memory_fraction", 0.05, 1, "of each GPU's memory that this process may take",
               TTS_AT(model.gpu_memory_fraction));
  table.other(SettingKind::kBoolean, "model", "verify_hashes", "check the files against the manifest before use",
              TTS_AT(model.verify_hashes));

  table.integer("engine", "max_batch", 1, 256, "utterances generating at once; fewer where the machine is too slow for so many",
                TTS_AT(engine.max_batch));
  table.integer("engine", "max_queue", 1, 100'000, "utterances waiting; beyond: 429", TTS_AT(engine.max_queue));
  table.integer("engine", "max_wait_ms", 0, kHourMs, "expected wait of a new request; beyond: 429; 0 = no limit", TTS_AT(engine.max_wait));
  table.integer("engine", "max_load_percent", 1, 100, "of the machine's time that streams may need to stay at real time; beyond, new ones wait",
                TTS_AT(engine.max_load_percent));
  table.integer("engine", "max_lead_ms", 1, kHourMs, "audio ahead of a listener; beyond, the stream yields to all others",
                TTS_AT(engine.max_lead));
  latency_setting(table);
  table.integer("engine", "exact_within_ms", 0, kHourMs, "latency auto: exact when the first sound then comes within",
                TTS_AT(engine.exact_within));
  table.integer("engine", "lookahead", 1, 1'024, "steps that the first samples of low latency look ahead", TTS_AT(engine.lookahead));
  table.integer("engine", "batch_window_ms", 0, 1'000, "an idle engine waits this long for company; 0 = not at all",
                TTS_AT(engine.batch_window));
  table.integer("engine", "prefill_chunk", 1, 4'096, "prompt positions per step and joining utterance", TTS_AT(engine.prefill_chunk));
  table.integers(SettingKind::kIntegerList, "engine", "chunk_ramp", 1, 1'024,
                 "steps of sound in a stream's first pieces; empty = 4, 8, 12, 16 in low latency, else 8, 8, 12, 16",
                 TTS_AT(engine.chunk_ramp));
  table.integer("engine", "chunk_steps", 1, 1'024, "steps of sound in later pieces, more or fewer as the listener has much or little left",
                TTS_AT(engine.chunk_steps));
  table.integers(SettingKind::kIntegerList, "engine", "preferred_batch_sizes", 1, 256,
                 "numbers of streams that a GPU's work is prepared for; empty = powers of two", TTS_AT(model.preferred_batch_sizes));
  table.integer("engine", "park_after_ms", 0, kHourMs, "a stream paused for longer gives its slot to others who wait",
                TTS_AT(engine.park_after));
  table.integer("engine", "max_parked_mb", 0, 65'536,
                "host memory of each engine for such streams, MiB; beyond, they keep their slots; 0 = always", TTS_AT(engine.max_parked_mb));
  table.integer("engine", "hang_limit_ms", 100, kHourMs, "work without progress for longer: not ready", TTS_AT(engine.hang_limit));
}

void synthesis_settings(Table& table) {
  table.integer("synthesis", "workers", 1, 64, "threads for text and audio encoding", TTS_AT(synthesis.workers));
  table.integer("synthesis", "max_requests", 1, 100'000, "requests running at once; beyond: 429", TTS_AT(synthesis.max_requests));
  table.integer("synthesis", "max_text_chars", 1, 1'000'000, "characters of one request; beyond: 413", TTS_AT(synthesis.max_text_chars));
  table.integer("synthesis", "sentences_ahead", 0, 16, "sentences generated before the one being heard has ended",
                TTS_AT(synthesis.sentences_ahead));
  table.integer("synthesis", "crossfade_ms", 0, 500, "overlap where two sentences meet; 0 = none", TTS_AT(synthesis.crossfade_ms));
  table.integer("synthesis", "opus_complexity", 0, 10, "work spent on Opus, 0 to 10: 10 costs half as much again as 5, 1 two thirds of it",
                TTS_AT(synthesis.opus_complexity));
  table.integer("synthesis", "max_audio_seconds", 1, 86'400, "audio of one request; beyond: an error", TTS_AT(synthesis.max_audio_seconds));
  table.integer("synthesis", "max_ahead_seconds", 1, 3'600, "audio held for a sentence whose turn has not come",
                TTS_AT(synthesis.max_ahead_seconds));
  table.integer("synthesis", "max_backlog_seconds", 1, 3'600, "audio that waits for a worker; beyond, its sentence pauses",
                TTS_AT(synthesis.max_backlog_seconds));
  table.integer("synthesis", "high_water_bytes", 4'096, 1'024 * kMebibyte, "unsent bytes at which a slow client's synthesis pauses",
                TTS_AT(synthesis.log.high_water_bytes));
  table.integer("synthesis", "low_water_bytes", 1'024, 1'024 * kMebibyte, "unsent bytes below which it goes on",
                TTS_AT(synthesis.log.low_water_bytes));
}

void log_settings(Table& table) {
  auto& level =
      table.choice("log", "level", {"trace", "debug", "info", "warning", "error", "critical", "off"}, "least severe records to write");
  bind(level, TTS_AT(log.level));
  auto& format = table.choice("log", "format", {"text", "json"}, "what a line looks like");
  format.get = [](const Config& config) -> json { return config.log.format == observability::LogFormat::kJson ? "json" : "text"; };
  format.set = [](Config& config, const json& value) {
    config.log.format = value == "json" ? observability::LogFormat::kJson : observability::LogFormat::kText;
  };
}

std::vector<Setting> make_settings() {
  Table table;
  server_settings(table);
  stream_settings(table);
  engine_settings(table);
  synthesis_settings(table);
  log_settings(table);
  table.other(SettingKind::kTextList, "openai", "models", "model names that OpenAI clients send and that mean the served model",
              TTS_AT(openai.models));
  table.other(SettingKind::kTextMap, "openai", "voices", "voice names of OpenAI clients, as name=voice; missing ones are chosen by gender",
              TTS_AT(openai.voices));
  return table.take();
}

#undef TTS_AT

std::optional<json> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return json(number);
}

std::optional<json> decimal_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return json(number);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Error wrong(const Setting& setting, const std::string& got) {
  return {.code = ErrorCode::kInvalidArgument,
          .message = "must be " + range_text(setting) + "; got " + got,
          .param = setting.key(),
          .retry_after = {}};
}

bool integer_in_range(const Setting& setting, const json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() >= setting.min && value.get<std::uint64_t>() <= setting.max;
}

}  // namespace

std::string Setting::variable() const {
  std::string text = "TTS_";
  text.append(section).append("_").append(name);
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> table = make_settings();
  return table;
}

std::string range_text(const Setting& setting) {
  const auto range = [&] { return std::to_string(setting.min) + " to " + std::to_string(setting.max); };
  switch (setting.kind) {
    case SettingKind::kText: {
      if (setting.choices.empty()) return "a text";
      std::string text = "one of ";
      for (const auto& choice : setting.choices) {
        if (&choice != &setting.choices.front()) text += ", ";
        text += choice;
      }
      return text;
    }
    case SettingKind::kInteger: return "a whole number from " + range();
    case SettingKind::kNumber: return "a number from " + json(setting.least).dump() + " to " + json(setting.most).dump();
    case SettingKind::kBoolean: return "true or false";
    case SettingKind::kTextList: return "a list of texts";
    case SettingKind::kIntegerList: return "a list of whole numbers from " + range();
    case SettingKind::kTextMap: return "a map from text to text";
  }
  return {};
}

Result<json> parse_text(const Setting& setting, std::string_view text) {
  const std::string got = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  switch (setting.kind) {
    case SettingKind::kText: return json(text);
    case SettingKind::kInteger:
      if (auto value = whole_number(text)) return *value;
      return wrong(setting, got);
    case SettingKind::kNumber:
      if (auto value = decimal_number(text)) return *value;
      return wrong(setting, got);
    case SettingKind::kBoolean:
      if (text == "true" || text == "1" || text == "yes" || text == "on") return json(true);
      if (text == "false" || text == "0" || text == "no" || text == "off") return json(false);
      return wrong(setting, got);
    case SettingKind::kTextList:
    case SettingKind::kIntegerList: {
      auto list = json::array();
      for (const auto part : split(text, ',')) {
        if (setting.kind == SettingKind::kTextList) {
          list.push_back(part);
        } else if (auto number = whole_number(part)) {
          list.push_back(*number);
        } else {
          return wrong(setting, got);
        }
      }
      return list;
    }
    case SettingKind::kTextMap: {
      auto map = json::object();
      for (const auto part : split(text, ',')) {
        const auto equals = part.find('=');
        if (equals == std::string_view::npos || equals == 0) return wrong(setting, got + "; write name=value,name=value");
        map[std::string(part.substr(0, equals))] = part.substr(equals + 1);
      }
      return map;
    }
  }
  return wrong(setting, got);
}

Status check_value(const Setting& setting, const json& value) {
  const auto is_text = [](const json& element) { return element.is_string(); };
  bool good = false;
  switch (setting.kind) {
    case SettingKind::kText:
      good = value.is_string() &&
             (setting.choices.empty() || std::find(setting.choices.begin(), setting.choices.end(), value) != setting.choices.end());
      break;
    case SettingKind::kInteger: good = integer_in_range(setting, value); break;
    case SettingKind::kNumber:
      good = value.is_number() && value.get<double>() >= setting.least && value.get<double>() <= setting.most;
      break;
    case SettingKind::kBoolean: good = value.is_boolean(); break;
    case SettingKind::kTextList: good = value.is_array() && std::all_of(value.begin(), value.end(), is_text); break;
    case SettingKind::kIntegerList:
      good = value.is_array() &&
             std::all_of(value.begin(), value.end(), [&](const json& element) { return integer_in_range(setting, element); });
      break;
    case SettingKind::kTextMap: good = value.is_object() && std::all_of(value.begin(), value.end(), is_text); break;
  }
  if (good) return Ok{};
  return wrong(setting, value.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace tts::config
