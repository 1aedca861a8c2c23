#include "safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tts/base/sha256.h"

namespace tts::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  SafetensorsTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ =
        std::filesystem::temp_directory_path() / ("tts_" + std::string(test->name()) + "_" + std::to_string(::getpid()) + ".safetensors");
  }
  ~SafetensorsTest() override { std::filesystem::remove(path_); }

  void write_bytes(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  static std::string with_length(std::uint64_t length, const std::string& rest) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bytes + rest;
  }

  void write(const std::string& header, const std::string& data) const { write_bytes(with_length(header.size(), header + data)); }

  // The message of the exception that opening throws; empty when the file is accepted.
  std::string open_error() const {
    try {
      const SafetensorsFile file(path_);
      return {};
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

  std::string error_of(const std::string& header, const std::string& data = std::string(16, '\0')) const {
    write(header, data);
    return open_error();
  }

  static std::string floats(std::initializer_list<float> values) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), std::data(values), bytes.size());
    return bytes;
  }

  std::filesystem::path path_;
};

TEST_F(SafetensorsTest, WidensEveryFloatingType) {
  const std::string halves("\x00\x3c\x00\xc0", 4), brains("\x80\x3f\x00\xc0", 4);
  write(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
        R"("b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},"c":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]}}   )",
        floats({1.5F, -2.0F}) + halves + brains);
  const SafetensorsFile file(path_);
  TensorReader reader(file);
  EXPECT_THAT(reader.get("a", {2, 1}), ElementsAre(1.5F, -2.0F));
  EXPECT_THAT(reader.get("b", {2}), ElementsAre(1.0F, -2.0F));
  EXPECT_THAT(reader.get("c", {2}), ElementsAre(1.0F, -2.0F));
  EXPECT_NO_THROW(reader.finish());
}

TEST_F(SafetensorsTest, ReadsTensorsAtOddAddresses) {
  write(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[1,9]} })", "x" + floats({3.0F, 4.0F}) + "y");
  const SafetensorsFile file(path_);
  TensorReader reader(file);
  EXPECT_THAT(reader.get("a", {2}), ElementsAre(3.0F, 4.0F));
}

TEST_F(SafetensorsTest, AcceptsScalarsAndEmptyTensorsAndGaps) {
  write(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[4,8]},"e":{"dtype":"I64","shape":[0,7],"data_offsets":[8,8]}})",
        floats({1.0F, 7.0F, 2.0F}));
  const SafetensorsFile file(path_);
  EXPECT_EQ(widen(file.tensors().at("s")), std::vector<float>{7.0F});
  EXPECT_TRUE(file.tensors().at("e").bytes.empty());
}

TEST_F(SafetensorsTest, ListsEveryProblemOfTheReaderAtOnce) {
  write(R"({"shape":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"type":{"dtype":"I32","shape":[1],"data_offsets":[8,12]},)"
        R"("nan":{"dtype":"F32","shape":[1],"data_offsets":[12,16]},"extra":{"dtype":"F32","shape":[0],"data_offsets":[16,16]}})",
        floats({0, 0, 0, std::numeric_limits<float>::quiet_NaN()}));
  const SafetensorsFile file(path_);
  TensorReader reader(file);
  EXPECT_EQ(reader.get("missing", {3}).size(), 3U);
  EXPECT_EQ(reader.get("shape", {1, 2}).size(), 2U);
  reader.get("type", {1});
  reader.get("nan", {1});
  try {
    reader.finish();
    FAIL() << "four wrong tensors and an extra one were accepted";
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, HasSubstr(path_.string()));
    EXPECT_THAT(text, HasSubstr("'missing' is missing"));
    EXPECT_THAT(text, HasSubstr("'shape' has shape [2], expected [1,2]"));
    EXPECT_THAT(text, HasSubstr("'type' has dtype I32"));
    EXPECT_THAT(text, HasSubstr("'nan' holds NaN"));
    EXPECT_THAT(text, HasSubstr("'extra' is not part of this model"));
  }
}

TEST_F(SafetensorsTest, ExtraTensorsCanBeAllowed) {
  write(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", "");
  const SafetensorsFile file(path_);
  TensorReader one(file), all(file);
  one.ignore("a");
  EXPECT_THROW(one.finish(), std::runtime_error);
  one.ignore("b");
  EXPECT_NO_THROW(one.finish());
  all.ignore_rest();
  EXPECT_NO_THROW(all.finish());
}

TEST_F(SafetensorsTest, ChecksTheHashOfWhatItMapped) {
  write("{}", "");
  const SafetensorsFile file(path_);
  EXPECT_NO_THROW(file.require_sha256(sha256_file_hex(path_)));
  EXPECT_THROW(file.require_sha256(std::string(64, '0')), std::runtime_error);
}

TEST_F(SafetensorsTest, RefusesFilesThatAreNotThere) {
  EXPECT_THAT(open_error(), HasSubstr("cannot open"));
  EXPECT_THROW(SafetensorsFile(std::filesystem::temp_directory_path()), std::runtime_error);
}

TEST_F(SafetensorsTest, RefusesShortFilesAndWrongHeaderLengths) {
  for (const std::string& bytes : {std::string(), std::string(7, '\0')}) {
    write_bytes(bytes);
    EXPECT_THAT(open_error(), HasSubstr("at least 8 bytes"));
  }
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1} << 40, std::numeric_limits<std::uint64_t>::max(),
                                     std::numeric_limits<std::uint64_t>::max() - 7}) {
    write_bytes(with_length(length, "{}"));
    EXPECT_THAT(open_error(), HasSubstr("header length")) << length;
  }
  write_bytes(with_length(0, ""));
  EXPECT_THAT(open_error(), HasSubstr("not valid JSON"));
}

TEST_F(SafetensorsTest, RefusesAHeaderAboveItsLimitEvenWhenTheFileHoldsIt) {
  const std::uint64_t length = kMaxSafetensorsHeaderBytes + 1;
  write_bytes(with_length(length, "{}"));
  std::filesystem::resize_file(path_, 8 + length);  // sparse: no such amount is written
  EXPECT_THAT(open_error(), HasSubstr("header length"));
}

TEST_F(SafetensorsTest, RefusesHeadersThatAreNotTheGrammar) {
  for (const char* header : {
           "",
           "null",
           "[]",
           "1",
           "\"a\"",
           "{",
           "{}x",
           "{\"a\":1}",
           "{\"a\":null}",
           "{\"a\":[]}",
           "{\"a\":\"b\"}",
           "{\"a\":{}}",
           "{\"a\":{\"dtype\":1}}",
           "{\"a\":{\"dtype\":[1]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[true],\"data_offsets\":[0,4]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[[1]],\"data_offsets\":[0,4]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}",
           "{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}",
           "{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]}}",
           "{\"__metadata__\":{\"a\":1}}",
           "{\"__metadata__\":{\"a\":{}}}",
           "{\"__metadata__\":[]}",
           "{\"\xff\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
       }) {
    EXPECT_NE(error_of(header), "") << header;
  }
}

TEST_F(SafetensorsTest, RefusesANulByteThatWouldHideTheRest) { EXPECT_THAT(error_of(std::string("{}\0garbage", 10)), HasSubstr("NUL")); }

TEST_F(SafetensorsTest, RefusesDuplicates) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(error_of("{\"a\":" + entry + ",\"a\":" + entry + "}"), HasSubstr("twice"));
  EXPECT_THAT(error_of("{\"__metadata__\":{},\"__metadata__\":{}}"), HasSubstr("twice"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})"), HasSubstr("'dtype' occurs twice"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})"), HasSubstr("'shape' occurs twice"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"data_offsets":[0,4]}})"),
              HasSubstr("'data_offsets' occurs twice"));
}

TEST_F(SafetensorsTest, RefusesSpansThatLieOrOverflow) {
  for (const char* fields : {
           R"("shape":[4],"data_offsets":[4,20])",                                         // past the end
           R"("shape":[1],"data_offsets":[8,4])",                                          // backwards
           R"("shape":[2],"data_offsets":[0,4])",                                          // too short
           R"("shape":[1],"data_offsets":[0,8])",                                          // too long
           R"("shape":[4611686018427387904,4],"data_offsets":[0,0])",                      // product wraps to zero
           R"("shape":[18446744073709551615,18446744073709551615],"data_offsets":[0,4])",  // product wraps
           R"("shape":[1],"data_offsets":[18446744073709551612,18446744073709551615])",    // far outside
       }) {
    EXPECT_NE(error_of("{\"a\":{\"dtype\":\"F32\"," + std::string(fields) + "}}"), "") << fields;
  }
}

TEST_F(SafetensorsTest, RefusesOverlapsAndListsAllBadEntries) {
  const std::string error =
      error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
               R"("c":{"dtype":"F32","shape":[9],"data_offsets":[0,36]},"d":{"dtype":"X","shape":[0],"data_offsets":[0,0]}})");
  EXPECT_THAT(error, HasSubstr("tensors 'a' and 'b' overlap"));
  EXPECT_THAT(error, HasSubstr("tensor 'c'"));
  EXPECT_THAT(error, HasSubstr("tensor 'd'"));
}

TEST_F(SafetensorsTest, BoundsTheNumberOfTensorsAndTheLengthOfMessages) {
  std::string header = "{";
  for (std::size_t i = 0; i <= kMaxSafetensorsTensors; ++i) {
    header += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"F32","shape":[1],"data_offsets":[9,9]})";
  }
  EXPECT_THAT(error_of(header + "}"), HasSubstr("too many tensors"));
  EXPECT_LT(error_of("{\"" + std::string(1 << 20, 'n') + "\":1}").size(), 2000U);
}

TEST_F(SafetensorsTest, StopsAtDeepNesting) {
  EXPECT_NE(error_of(std::string(1 << 20, '[')), "");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  EXPECT_NE(error_of(deep), "");
}

TEST_F(SafetensorsTest, SurvivesArbitraryDamage) {
  const std::string header =
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"F16","shape":[4],"data_offsets":[8,16]}})";
  const std::string good = with_length(header.size(), header + std::string(16, '\1'));
  std::mt19937 random(20240501);
  int accepted = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = good;
    for (auto flips = 1 + random() % 3; flips > 0; --flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    write_bytes(bytes);
    try {
      const SafetensorsFile file(path_);
      for (const auto& [name, tensor] : file.tensors()) {
        if (tensor.dtype == "F32" || tensor.dtype == "F16") widen(tensor);  // reads every byte it was given
      }
      ++accepted;
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_GT(accepted, 0);  // flips in the data part leave a valid file
}

}  // namespace
}  // namespace tts::model
