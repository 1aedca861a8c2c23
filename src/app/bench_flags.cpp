#include "bench_flags.h"

#include <map>

#include <CLI/CLI.hpp>

namespace tts::app {
namespace {

// Flags of one paragraph of the help, with the shown kind of value in our own words.
class Group {
 public:
  Group(CLI::App& role, std::string name) : role_(role), name_(std::move(name)) {}

  template <class T>
  CLI::Option* add(const char* flag, T& value, const char* kind, const char* help) {
    return role_.add_option(flag, value, help)->option_text(kind)->group(name_);
  }
  template <class T>
  CLI::Option* list(const char* flag, std::vector<T>& value, const char* kind, const char* help) {
    return add(flag, value, kind, help)->delimiter(',')->expected(1, -1);
  }
  void flag(const char* flag, bool& value, const char* help) { role_.add_flag(flag, value, help)->option_text(" ")->group(name_); }

 private:
  CLI::App& role_;
  const std::string name_;
};

}  // namespace

void add_bench_flags(CLI::App& role, BenchArguments& arguments) {
  auto& plan = arguments.plan;
  Group target(role, "Server to measure");
  target.add("--url", arguments.url, "URL", "a running one, http://host:port [one in this process, with the settings below]");
  target.add("--admin-url", arguments.admin_url, "URL", "with --url: its admin port, for figures of its engine")->needs("--url");

  Group load(role, "Load");
  load.list("--concurrency", plan.concurrency, "N,N", "closed loops: listeners, each asking anew when its audio has arrived [1,4,8,16]")
      ->check(CLI::Range(1, 10'000));
  load.list("--load", plan.load, "P,P", "open loops: Poisson arrivals at these percentages of the best closed loop; 0 = none [25,50,75,90]")
      ->check(CLI::Range(0, 1'000));
  load.add("--seconds", plan.seconds, "S", "how long a level is measured [20]")->check(CLI::Range(1, 86'400));
  load.add("--requests", plan.requests, "N", "requests that end a level instead")->check(CLI::Range(1, 1'000'000));
  load.add("--pace", plan.pace, "NAME", "a listener asks anew at the audio's arrival, or after its playback [arrival]")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, bench::Pace>{{"arrival", bench::Pace::kArrival}, {"playback", bench::Pace::kPlayback}}));
  load.flag("--find-capacity", plan.find_capacity, "instead of levels: the most streams at once without a silence over --seconds");
  load.add("--max-streams", plan.most_streams, "N", "it looks no further [1024]")->check(CLI::Range(1, 100'000));
  load.add("--max-wait", plan.most_wait, "S", "it takes a listener to whom nothing comes for longer as not served [5]")
      ->check(CLI::Range(0.1, 600.0));

  Group texts(role, "Requests");
  texts.add("--texts", plan.texts, "FILE", "one text a line, or JSON lines with \"text\" and \"lang\" [built-in sentences]");
  texts.list("--languages", plan.languages, "L,L", "of the built-in texts [zh,en]");
  texts.list("--lengths", plan.lengths, "N,N", "of the built-in texts, in characters [10,40,120,300]")->check(CLI::Range(8, 2'000));
  texts.add("--steps", plan.steps, "N", "steps of the model that every text takes exactly [as it ends]")->check(CLI::Range(1, 100'000));
  texts.add("--voice", plan.voice, "ID", "voice [one that speaks the text's language]");
  texts.add("--format", plan.format, "NAME", "pcm, wav or opus [pcm]")->check(CLI::IsMember({"pcm", "wav", "opus"}));
  texts.add("--fields", plan.fields, "JSON", "more fields of each request, as an object");
  texts.add("--seed", plan.seed, "N", "of the texts' order, the arrivals and the speech [1]");

  Group results(role, "Results");
  results.add("-o,--output", arguments.output, "FILE", "figures as JSON");
  results.add("--plot", arguments.plot, "FILE", "first audio and speed by load, as SVG")->excludes("--find-capacity");
}

}  // namespace tts::app
