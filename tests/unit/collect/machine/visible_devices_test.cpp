#include "collect/machine/visible_devices.h"

#include <gtest/gtest.h>

namespace tidemark::testing {
namespace {

using Ordinals = std::vector<std::optional<std::uint32_t>>;
constexpr std::nullopt_t kNone = std::nullopt;

DeviceInfo gpu(std::uint32_t index, const std::string& name, const std::string& uuid) {
  DeviceInfo info;
  info.vendor = "nvidia";
  info.index = index;
  info.name = name;
  info.uuid = uuid;
  return info;
}

std::vector<DeviceInfo> four_alike() {
  return {gpu(0, "H100", "GPU-aaaa"), gpu(1, "H100", "GPU-abbb"), gpu(2, "H100", "GPU-cccc"),
          gpu(3, "H100", "GPU-dddd")};
}

Ordinals ordinals(const std::vector<DeviceInfo>& devices, const std::optional<std::string>& visible,
                  const std::optional<std::string>& order = std::nullopt) {
  return apply_cuda_visibility(devices, visible, order).ordinals;
}

TEST(VisibleDevices, AllWithoutTheVariable) {
  EXPECT_EQ(ordinals(four_alike(), std::nullopt), (Ordinals{0, 1, 2, 3}));
}

TEST(VisibleDevices, ByIndex) {
  EXPECT_EQ(ordinals(four_alike(), "2, 0"), (Ordinals{1, kNone, 0, kNone}));
  EXPECT_EQ(ordinals(four_alike(), "3,-1,0"), (Ordinals{kNone, kNone, kNone, 0})) << "the list ends at -1";
  EXPECT_EQ(ordinals(four_alike(), "1,9,0"), (Ordinals{kNone, 0, kNone, kNone})) << "and at what is not there";
}

TEST(VisibleDevices, ByUuid) {
  EXPECT_EQ(ordinals(four_alike(), "GPU-cccc,GPU-aa"), (Ordinals{1, kNone, 0, kNone}));
  EXPECT_EQ(ordinals(four_alike(), "GPU-c,GPU-a,0"), (Ordinals{kNone, kNone, 0, kNone})) << "GPU-a is two devices";
}

TEST(VisibleDevices, None) {
  for (const char* value : {"", "-1", "none", "0,0", "NoDevFiles"}) {
    const VisibleDevices result = apply_cuda_visibility(four_alike(), value, std::nullopt);
    EXPECT_EQ(result.ordinals, (Ordinals{kNone, kNone, kNone, kNone})) << value;
    EXPECT_EQ(result.visible, std::vector<bool>(4, false)) << value;
    EXPECT_FALSE(result.problem.empty()) << value;
  }
}

TEST(VisibleDevices, DifferentModelsAreNotNumberedByBus) {
  const std::vector<DeviceInfo> devices = {gpu(0, "T4", "GPU-aaaa"), gpu(1, "H100", "GPU-bbbb")};
  const VisibleDevices unknown = apply_cuda_visibility(devices, std::nullopt, std::nullopt);
  EXPECT_EQ(unknown.ordinals, (Ordinals{kNone, kNone})) << "CUDA calls the faster one 0, and which is that?";
  EXPECT_EQ(unknown.visible, std::vector<bool>(2, true));
  EXPECT_FALSE(unknown.problem.empty());
  EXPECT_EQ(ordinals(devices, "1"), (Ordinals{kNone, kNone}));
  EXPECT_EQ(ordinals(devices, "1", "PCI_BUS_ID"), (Ordinals{kNone, 0}));
  EXPECT_EQ(ordinals(devices, "GPU-bbbb"), (Ordinals{kNone, 0}));
  EXPECT_EQ(ordinals(devices, std::nullopt, "PCI_BUS_ID"), (Ordinals{0, 1}));
}

TEST(VisibleDevices, OfAGpuInMigModeTheFirstInstance) {
  std::vector<DeviceInfo> devices = {gpu(0, "A100", "GPU-aaaa"), gpu(0, "A100 MIG", "MIG-1"),
                                     gpu(1, "A100 MIG", "MIG-2")};
  devices[0].mig_enabled = true;
  devices[1].instance_of = devices[2].instance_of = 0;
  EXPECT_EQ(ordinals(devices, std::nullopt), (Ordinals{kNone, 0, kNone}));
  EXPECT_EQ(ordinals(devices, "MIG-2"), (Ordinals{kNone, kNone, 0}));
}

TEST(VisibleDevices, OtherVendorsAreNotVisibleToCuda) {
  std::vector<DeviceInfo> devices = {gpu(0, "MI300X", "1"), gpu(0, "H100", "GPU-aaaa")};
  devices[0].vendor = "amd";
  EXPECT_EQ(ordinals(devices, std::nullopt), (Ordinals{kNone, 0}));
}

TEST(VisibleDevices, VariableInAnEnvironment) {
  const std::string block("A=1\0CUDA_VISIBLE_DEVICES=2,3\0XA=4\0", 35);
  EXPECT_EQ(variable_in(block, "CUDA_VISIBLE_DEVICES"), "2,3");
  EXPECT_EQ(variable_in(block, "A"), "1");
  EXPECT_EQ(variable_in(block, "VISIBLE_DEVICES"), std::nullopt);
  EXPECT_EQ(variable_in("", "A"), std::nullopt);
}

}  // namespace
}  // namespace tidemark::testing
