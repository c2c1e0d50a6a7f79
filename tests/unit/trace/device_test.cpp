#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/event.h"

namespace tidemark {
namespace {

TEST(Device, HasTheNameThatItIsReadFrom) {
  const std::pair<Device, const char*> named[] = {
      {{DeviceType::cpu, 0}, "cpu"},
      {{DeviceType::cuda, 3}, "cuda:3"},
      {{DeviceType::hip, 0}, "hip:0"},
      {{DeviceType::xpu, 127}, "xpu:127"},
      {{DeviceType::cuda_driver, 1}, "cuda-driver:1"},
      {{DeviceType::cuda_managed, 0}, "cuda-managed:0"},
      {{DeviceType::cuda_host, 0}, "cuda-host"},
      {{static_cast<DeviceType>(9), 2}, "device-type-9:2"},
  };
  for (const auto& [device, name] : named) {
    EXPECT_EQ(to_string(device), name);
    EXPECT_EQ(parse_device(name), device);
  }
}

TEST(Device, IsNoneForOtherTexts) {
  for (const char* text : {"", "cuda", "cpu:0", "cuda-host:0", "cuda:", "cuda:128", "cuda:1x", "gpu:0",
                           "device-type-1:0", "device-type-200:0", "device-type--9:0"}) {
    EXPECT_EQ(parse_device(text), std::nullopt) << text;
  }
}

TEST(Device, IsTheDriversFromItsNumbersOn) {
  EXPECT_FALSE(is_driver_memory({DeviceType::cuda, 0}));
  EXPECT_FALSE(is_driver_memory({static_cast<DeviceType>(20), 0}));  // PrivateUse1
  EXPECT_TRUE(is_driver_memory({DeviceType::cuda_driver, 0}));
  EXPECT_TRUE(is_driver_memory({DeviceType::cuda_managed, 0}));
  EXPECT_TRUE(is_driver_memory({DeviceType::cuda_host, 0}));
}

}  // namespace
}  // namespace tidemark
