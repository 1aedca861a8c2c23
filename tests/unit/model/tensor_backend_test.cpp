#include "tensor_backend.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <dlfcn.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>

namespace tts::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const std::filesystem::path& path) {
  try {
    load_tensor_backend(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(TensorBackend, TheOneBesideTheProgramIsLoadedOnce) {
  const TensorBackend& backend = tensor_backend();
  EXPECT_EQ(&tensor_backend(), &backend);
  EXPECT_EQ(loaded_tensor_backend(), &backend);
}

TEST(TensorBackend, AMissingOneIsNamedWithWhatToDo) {
  EXPECT_THAT(error_of("/nowhere/libtts_tensors.so"),
              AllOf(HasSubstr("/nowhere/libtts_tensors.so belongs beside the program"), HasSubstr("set device to cpu")));
}

TEST(TensorBackend, WhatIsNoLibraryIsRefused) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "not_a_library.so";
  std::ofstream(path) << "text";
  EXPECT_THAT(error_of(path), AllOf(HasSubstr("cannot be loaded"), HasSubstr(path.string()), HasSubstr("LD_LIBRARY_PATH")));
  std::filesystem::remove(path);
}

TEST(TensorBackend, ALibraryOfAnotherBuildIsRefused) {
  Dl_info any_other{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&lzma_version_string), &any_other), 0);
  EXPECT_THAT(error_of(any_other.dli_fname), HasSubstr("is of another build than the program"));
}

TEST(TensorBackend, GpusTakeCudaAndADriver) {
  if (tensor_backend().count_gpus() == 0) return;  // and may, with both
  EXPECT_TRUE(built_for_gpus());
  EXPECT_TRUE(has_gpu_driver());
}

}  // namespace
}  // namespace tts::model
