#include "tts/config/config.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "settings.h"

namespace tts::config {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() { fs::create_directories(folder_); }
  ~ConfigTest() override { fs::remove_all(folder_); }

  fs::path file(const std::string& content, const std::string& name = "server.json") {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static std::vector<std::string> problems(const Sources& sources) {
    try {
      load_config(sources);
    } catch (const ConfigError& error) {
      return error.problems();
    }
    return {};
  }

  const fs::path folder_ = fs::temp_directory_path() / ("tts-config-" + std::to_string(getpid()));
};

TEST_F(ConfigTest, DefaultsAreSafeAndValid) {
  const auto loaded = load_config({});
  EXPECT_EQ(loaded.config.server.http.host, "127.0.0.1");
  EXPECT_EQ(loaded.config.server.admin.host, "127.0.0.1");
  EXPECT_EQ(loaded.config.server.http.port, 8080);
  EXPECT_EQ(loaded.config.server.admin.port, 9090);
  EXPECT_EQ(loaded.config.synthesis.max_text_chars, 4000U);
  EXPECT_EQ(loaded.origins.at("server.port"), "default");
  EXPECT_THAT(loaded.warnings, IsEmpty());
}

TEST_F(ConfigTest, FlagsBeatEnvironmentBeatsFileBeatsDefault) {
  const auto path = file(R"({"server":{"port":1001,"io_threads":3,"max_connections":7}})");
  const auto loaded = load_config(
      {.file = path, .environment = {{"TTS_SERVER_PORT", "1002"}, {"TTS_SERVER_IO_THREADS", "4"}}, .flags = {{"server.port", "1003"}}});
  EXPECT_EQ(loaded.config.server.http.port, 1003);
  EXPECT_EQ(loaded.config.server.io_threads, 4U);
  EXPECT_EQ(loaded.config.server.http.max_connections, 7U);
  EXPECT_EQ(loaded.origins.at("server.port"), "--port");
  EXPECT_EQ(loaded.origins.at("server.io_threads"), "TTS_SERVER_IO_THREADS");
  EXPECT_EQ(loaded.origins.at("server.max_connections"), path.string());
  EXPECT_EQ(loaded.origins.at("server.host"), "default");
}

TEST_F(ConfigTest, EveryProblemIsListedAtOnce) {
  const auto path = file(R"({"server":{"port":70000,"prot":1,"host":5},"sever":{},"engine":[]})");
  const auto found = problems({.file = path,
                               .environment = {{"TTS_SERVER_IO_THREADS", "many"}, {"TTS_MODEL_VERIFY_HASHES", "perhaps"}},
                               .flags = {{"log.level", "loud"}, {"engine.chunk_ramp", "8,0"}}});
  EXPECT_EQ(found.size(), 9U);
  EXPECT_THAT(found, Contains(HasSubstr("server.port (" + path.string() + ") must be a whole number from 0 to 65535; got 70000")));
  EXPECT_THAT(found, Contains(HasSubstr("unknown setting 'server.prot'; did you mean 'port'?")));
  EXPECT_THAT(found, Contains(HasSubstr("server.host")));
  EXPECT_THAT(found, Contains(HasSubstr("unknown section 'sever'; did you mean 'server'?")));
  EXPECT_THAT(found, Contains(HasSubstr("section 'engine' must be a JSON object")));
  EXPECT_THAT(found, Contains("server.io_threads (TTS_SERVER_IO_THREADS) must be a whole number from 1 to 64; got \"many\""));
  EXPECT_THAT(found, Contains(HasSubstr("model.verify_hashes (TTS_MODEL_VERIFY_HASHES) must be true or false")));
  EXPECT_THAT(found, Contains(HasSubstr("log.level (--log-level) must be one of trace")));
  EXPECT_THAT(found, Contains(HasSubstr("engine.chunk_ramp (--chunk-ramp) must be a list of whole numbers from 1 to 1024")));
}

TEST_F(ConfigTest, UnreadableFilesAreNamed) {
  EXPECT_THAT(problems({.file = folder_ / "missing.json", .environment = {}, .flags = {}}), ElementsAre(HasSubstr("missing.json")));
  EXPECT_THAT(problems({.file = file("{\"server\": // no comments\n{}}"), .environment = {}, .flags = {}}),
              ElementsAre(HasSubstr("parse error at line 1")));
  EXPECT_THAT(problems({.file = file("[]"), .environment = {}, .flags = {}}), ElementsAre(HasSubstr("must hold a JSON object")));
  EXPECT_THAT(problems({.file = file(std::string(2'000'000, ' ')), .environment = {}, .flags = {}}), ElementsAre(HasSubstr("larger than")));
}

TEST_F(ConfigTest, ContradictionsAreFound) {
  EXPECT_THAT(problems({.file = {}, .environment = {}, .flags = {{"server.port", "9090"}}}), ElementsAre(HasSubstr("both 9090")));
  EXPECT_THAT(problems({.file = {}, .environment = {}, .flags = {{"synthesis.high_water_bytes", "5000"}}}),
              ElementsAre(HasSubstr("exceeds")));
  EXPECT_THAT(problems({.file = {}, .environment = {}, .flags = {{"server.port", "0"}, {"admin.port", "0"}}}), IsEmpty());
}

TEST_F(ConfigTest, ListsAndMapsFromText) {
  const auto loaded =
      load_config({.file = {},
                   .environment = {{"TTS_OPENAI_MODELS", "tts-1,my-tts"}, {"TTS_OPENAI_VOICES", "alloy=heart,nova=xiaobei"}},
                   .flags = {{"engine.chunk_ramp", "8,12"}}});
  EXPECT_THAT(loaded.config.openai.models, ElementsAre("tts-1", "my-tts"));
  EXPECT_EQ(loaded.config.openai.voices.at("alloy"), "heart");
  EXPECT_THAT(loaded.config.engine.chunk_ramp, ElementsAre(8, 12));
  EXPECT_THAT(problems({.file = {}, .environment = {{"TTS_OPENAI_VOICES", "alloy"}}, .flags = {}}), ElementsAre(HasSubstr("name=value")));
}

TEST_F(ConfigTest, NumbersFromTextAndJson) {
  const auto fraction = [](const Sources& sources) { return load_config(sources).config.model.gpu_memory_fraction; };
  EXPECT_EQ(fraction({.file = {}, .environment = {}, .flags = {{"model.gpu_memory_fraction", "0.5"}}}), 0.5);
  EXPECT_EQ(fraction({.file = file(R"({"model":{"gpu_memory_fraction":1}})"), .environment = {}, .flags = {}}), 1.0);
  for (const char* text : {"0", "1.5", "", "half", "0.5x", "nan", "-1"}) {
    EXPECT_THAT(problems({.file = {}, .environment = {}, .flags = {{"model.gpu_memory_fraction", text}}}),
                ElementsAre(HasSubstr("model.gpu_memory_fraction (--gpu-memory-fraction) must be a number from 0.05 to 1")))
        << text;
  }
}

TEST_F(ConfigTest, DevicesReachTheModel) {
  const auto model = load_config({.file = file(R"({"model":{"device":"cuda:0,cuda:1","device_map":"balanced","instances":2},
                                                   "engine":{"preferred_batch_sizes":[1,8]}})"),
                                  .environment = {},
                                  .flags = {}})
                         .config.model;
  EXPECT_EQ(model.device, "cuda:0,cuda:1");
  EXPECT_EQ(model.device_map, "balanced");
  EXPECT_EQ(model.instances, 2U);
  EXPECT_THAT(model.preferred_batch_sizes, ElementsAre(1, 8));
}

TEST_F(ConfigTest, EmptyTextEmptiesAList) {
  EXPECT_THAT(load_config({.file = {}, .environment = {{"TTS_OPENAI_MODELS", ""}}, .flags = {}}).config.openai.models, IsEmpty());
}

TEST_F(ConfigTest, MisspeltVariablesAreMentioned) {
  const auto loaded =
      load_config({.file = {}, .environment = {{"TTS_SERVER_PROT", "1"}, {"TTS_SOMETHING_ELSE_ENTIRELY", "1"}}, .flags = {}});
  EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("TTS_SERVER_PROT is not known; did you mean TTS_SERVER_PORT?")));
}

TEST_F(ConfigTest, KubernetesServiceLinksAreNotSettings) {
  const auto loaded = load_config({.file = {}, .environment = {{"TTS_SERVER_PORT", "tcp://10.0.0.1:8080"}}, .flags = {}});
  EXPECT_EQ(loaded.config.server.http.port, 8080);
  EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("service link")));
}

TEST_F(ConfigTest, OneSettingReachesEveryModuleItConcerns) {
  const auto loaded = load_config({.file = {},
                                   .environment = {},
                                   .flags = {{"engine.max_batch", "40"},
                                             {"engine.chunk_steps", "100"},
                                             {"engine.prefill_chunk", "200"},
                                             {"server.max_header_bytes", "9000"}}});
  EXPECT_EQ(loaded.config.engine.max_batch, 40U);
  EXPECT_EQ(loaded.config.model.max_slots, 40U);
  EXPECT_EQ(loaded.config.model.max_decode_steps, 100U);
  EXPECT_EQ(loaded.config.model.max_prefill_rows, 200U);
  EXPECT_EQ(loaded.config.server.admin.max_header_bytes, 9000U);
  EXPECT_EQ(loaded.config.server.admin.max_connections, 64U);
}

TEST_F(ConfigTest, DescriptionHoldsValuesAndOrigins) {
  const auto document = json::parse(describe(load_config({.file = {}, .environment = {{"TTS_LOG_FORMAT", "json"}}, .flags = {}})));
  EXPECT_EQ(document.at("log").at("format"), (json{{"value", "json"}, {"source", "TTS_LOG_FORMAT"}}));
  EXPECT_EQ(document.at("server").at("port").at("source"), "default");
}

TEST_F(ConfigTest, DefaultFileMeansTheDefaults) {
  const auto from_file = load_config({.file = file(default_file()), .environment = {}, .flags = {}});
  EXPECT_EQ(json::parse(default_file()), json::parse([&] {
              json values;
              for (const auto& setting : settings()) values[setting.section][setting.name] = setting.get(from_file.config);
              return values.dump();
            }()));
}

TEST_F(ConfigTest, ShippedFileAndTableAreUpToDate) {
  const auto content = [](const char* name) {
    std::ifstream stream(fs::path(TTS_SOURCE_DIR) / "config" / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_EQ(content("server.json"), default_file());
  EXPECT_THAT(content("README.md"), HasSubstr(settings_table()));
}

TEST_F(ConfigTest, NamesAreUniqueAndFlagsToo) {
  std::set<std::string> names;
  for (const auto& setting : settings()) {
    EXPECT_TRUE(names.insert(setting.key()).second) << setting.key();
    EXPECT_TRUE(names.insert(setting.flag).second) << setting.flag;
    EXPECT_FALSE(setting.help.empty()) << setting.key();
    const Config defaults;
    EXPECT_TRUE(check_value(setting, setting.get(defaults))) << setting.key() << " refuses its own default";
  }
}

TEST_F(ConfigTest, ModelIsFoundWhereItMayLie) {
  const auto model = folder_ / "tree/models/own";
  const auto program = folder_ / "tree/build/release/bin/chattts-server";
  fs::create_directories(model);
  fs::create_directories(program.parent_path());
  EXPECT_THROW(find_model("models/own", program), ConfigError) << "a folder without a manifest is no model";
  std::ofstream(model / "manifest.json") << "{}";
  EXPECT_EQ(find_model("models/own", program), fs::canonical(model));
  EXPECT_EQ(find_model("own", program), fs::canonical(model)) << "by its name";
  EXPECT_EQ(find_model(fs::absolute(model), "/elsewhere/bin/x"), fs::canonical(model));
  try {
    find_model("models/none", program);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("tree/models/none")) << "the places are listed";
  }
}

}  // namespace
}  // namespace tts::config
