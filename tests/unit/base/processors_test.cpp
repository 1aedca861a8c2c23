#include "tts/base/processors.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace tts {
namespace {

namespace fs = std::filesystem;

class GrantedProcessors : public testing::Test {
 protected:
  GrantedProcessors() : root_(fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~GrantedProcessors() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
};

TEST_F(GrantedProcessors, NoQuotaIsNoLimit) {
  EXPECT_EQ(granted_processors(root_, ""), std::nullopt);
  write("pod/cpu.max", "max 100000\n");
  EXPECT_EQ(granted_processors(root_, "0::/pod\n"), std::nullopt);
}

TEST_F(GrantedProcessors, VersionTwoReadsTheGroupAndThoseAroundIt) {
  write("cpu.max", "max 100000\n");
  write("pods/cpu.max", "150000 100000\n");
  write("pods/one/cpu.max", "400000 100000\n");
  EXPECT_EQ(granted_processors(root_, "0::/pods/one\n"), 1.5);
}

TEST_F(GrantedProcessors, AContainerSeesItsOwnGroupAtTheTop) {
  write("cpu.max", "250000 100000\n");
  EXPECT_EQ(granted_processors(root_, "0::/\n"), 2.5);
  EXPECT_EQ(granted_processors(root_, "0::/docker/not-to-be-seen-from-here\n"), 2.5);
}

TEST_F(GrantedProcessors, VersionOneHasTwoFilesUnderTheControllersName) {
  write("cpu,cpuacct/docker/a/cpu.cfs_quota_us", "300000\n");
  write("cpu,cpuacct/docker/a/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(granted_processors(root_, "5:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n0::/\n"), 3.0);
}

TEST_F(GrantedProcessors, OtherControllersAndDamagedLinesSayNothing) {
  write("cpuset/a/cpu.max", "100000 100000\n");
  write("a/cpu.max", "0 0\n");
  EXPECT_EQ(granted_processors(root_, "3:cpuset:/a\nnonsense\n\n0:\n0::/a\n"), std::nullopt);
}

TEST(UsableProcessors, AtLeastOneAndNoMoreThanThereAre) {
  const auto usable = usable_processors();
  EXPECT_GE(usable, 1U);
  EXPECT_LE(usable, static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_CONF)));
}

}  // namespace
}  // namespace tts
