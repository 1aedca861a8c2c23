#pragma once
// The levels of a benchmark, one after the other, against one server.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "http_client.h"
#include "load.h"
#include "report.h"
#include "workload.h"

namespace tts::bench {

struct Plan {
  std::vector<std::size_t> concurrency{1, 4, 8, 16};  // closed loops; none may be 0
  std::vector<double> load{25, 50, 75,
                           90};  // open loops, percent of the best closed loop; without closed loops there is nothing to take a share of
  double seconds = 20;           // window of a level
  std::size_t requests = 0;      // of a level; 0 = by time
  Pace pace = Pace::kArrival;

  std::filesystem::path texts;  // empty = built-in
  std::vector<std::string> languages{"zh", "en"};
  std::vector<std::size_t> lengths{10, 40, 120, 300};  // characters, built-in texts
  std::string format = "pcm";
  std::string voice;        // empty = one that speaks the text's language
  std::uint32_t steps = 0;  // forced length of every request; 0 = as the model ends
  std::string fields;       // JSON object with more fields of the request
  std::uint64_t seed = 1;

  bool find_capacity = false;       // instead of the levels
  std::size_t most_streams = 1024;  // it looks no further
  double most_wait = 5;             // s; find_capacity: a listener to whom nothing comes for longer is not served
};

// What the session can learn about the server besides what clients see; either may be empty.
struct ServerProbe {
  std::function<double()> cpu_seconds;   // processor time so far; called on the load's thread, whose own time is not to be in it
  std::function<std::string()> metrics;  // in Prometheus' text format
};

// Lines that stay and, on a terminal, one that changes.
class Screen {
 public:
  virtual ~Screen() = default;
  virtual void line(const std::string& text) = 0;
  virtual void progress(const std::string& text) = 0;  // replaces the last one; gone at the next line
};

class Session {
 public:
  // Asks the server for its model and voices. Throws std::runtime_error when it does not answer or the plan cannot be carried out.
  Session(const Server& server, Plan plan, ServerProbe probe, Screen& screen);

  const nlohmann::ordered_json& model() const noexcept { return model_; }  // its entry of GET /v1/models
  nlohmann::ordered_json workload() const;

  std::vector<Level> levels();
  Capacity capacity();

 private:
  void try_one();
  Level measure(std::string name, LoadOptions options);
  LoadOptions closed_loop(std::size_t clients) const;
  bool probe_streams(std::size_t streams, double seconds, Capacity& capacity);

  const Server& server_;
  const Plan plan_;
  const ServerProbe probe_;
  Screen& screen_;
  nlohmann::ordered_json model_;
  std::vector<Text> texts_;
  std::vector<std::string> voices_;
  nlohmann::ordered_json common_;
};

}  // namespace tts::bench
