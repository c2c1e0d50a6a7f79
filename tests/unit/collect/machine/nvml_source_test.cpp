// Without a working driver. The suite in tests/unit/conformance covers the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "collect/machine/device_source.h"
#include "temporary_folder.h"

namespace tidemark::testing {
namespace {

using ::testing::HasSubstr;

/// The result of opening the source with the fake library's script.
OpenedSource open_with(const std::string& script) {
  static const TemporaryFolder folder;
  ::setenv("FAKES_NVML", folder.write("nvml.json", script).c_str(), 1);
  return open_nvml_source({folder.path(), FAKES_NVML_NEW});
}

TEST(NvmlSource, NoDriverIsNoProblem) {
  const TemporaryFolder folder;
  const OpenedSource opened = open_nvml_source({folder.path(), "nowhere/libnvidia-ml.so.1"});
  EXPECT_EQ(opened.source, nullptr);
  EXPECT_EQ(opened.absent, "no NVIDIA driver");
  EXPECT_EQ(opened.problem, "");
}

TEST(NvmlSource, DriverWithoutItsLibrary) {
  const TemporaryFolder folder;
  folder.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04\n");
  const OpenedSource opened = open_nvml_source({folder.path(), "nowhere/libnvidia-ml.so.1"});
  EXPECT_EQ(opened.source, nullptr);
  EXPECT_THAT(opened.problem, HasSubstr("NVIDIA_DRIVER_CAPABILITIES"));
}

TEST(NvmlSource, DriverThatDoesNotStart) {
  EXPECT_THAT(open_with(R"({"init": 9})").problem, HasSubstr("kernel driver is not loaded"));
  EXPECT_THAT(open_with(R"({"init": 18})").problem, HasSubstr("different versions"));
  EXPECT_THAT(open_with(R"({"init": 4})").problem, HasSubstr("/dev/nvidiactl"));
  EXPECT_THAT(open_with(R"({"init": 999})").problem, HasSubstr("NVML: scripted error (999)"));
}

TEST(NvmlSource, LibraryWithoutNvmlFunctions) {
  const OpenedSource opened = open_nvml_source({"", "libc.so.6"});
  EXPECT_EQ(opened.source, nullptr);
}

TEST(NvmlSource, DriverOnOneLine) {
  const OpenedSource opened = open_with(R"({"driver": "580.159.04", "cuda": 12080})");
  ASSERT_NE(opened.source, nullptr);
  EXPECT_EQ(opened.source->driver(), "NVIDIA driver 580.159.04, CUDA 12.8");
  EXPECT_TRUE(opened.source->devices().empty());
}

TEST(NvmlSource, GpuWithoutHandle) {
  const OpenedSource opened = open_with(
      R"({"devices": [{"uuid": "GPU-1", "returns": {"nvmlDeviceGetHandleByIndex_v2": 15}}, {"uuid": "GPU-2"}]})");
  ASSERT_NE(opened.source, nullptr);
  ASSERT_EQ(opened.source->devices().size(), 2U);
  EXPECT_FALSE(opened.source->read(0).ok());
  EXPECT_TRUE(opened.source->read(1).ok());
  EXPECT_EQ(opened.source->devices()[1].index, 1U);
}

TEST(NvmlSource, MoreProcessesThanWereThoughtOf) {
  std::string list;
  for (int pid = 1; pid <= 300; ++pid)
    list += (pid == 1 ? "" : ",") + std::string("{\"pid\":") + std::to_string(pid) + "}";
  const OpenedSource opened = open_with(R"({"devices": [{"processes": [)" + list + "]}]}");
  ASSERT_NE(opened.source, nullptr);
  const auto processes = opened.source->processes(0);
  ASSERT_TRUE(processes.ok() && processes->has_value());
  EXPECT_EQ((*processes)->size(), 300U);
}

TEST(NvmlSource, NoPermissionToListProcesses) {
  const OpenedSource opened = open_with(
      R"({"devices": [{"returns": {"nvmlDeviceGetComputeRunningProcesses_v3": 4,
                                   "nvmlDeviceGetGraphicsRunningProcesses_v3": 4}}]})");
  ASSERT_NE(opened.source, nullptr);
  const auto processes = opened.source->processes(0);
  ASSERT_TRUE(processes.ok());
  EXPECT_EQ(*processes, std::nullopt);
}

}  // namespace
}  // namespace tidemark::testing
