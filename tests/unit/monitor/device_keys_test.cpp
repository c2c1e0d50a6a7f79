#include "monitor/device_keys.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(DeviceKeys, NumbersComeBack) {
  std::vector<DeviceInfo> devices(4);
  devices[0].vendor = devices[1].vendor = devices[2].vendor = "nvidia";
  devices[1].index = 12;
  devices[2].instance_of = 12;
  devices[2].index = 1;
  devices[3].vendor = "amd";
  devices[3].index = 5;
  const std::vector<std::string> keys = device_keys(devices);
  ASSERT_EQ(keys, (std::vector<std::string>{"0", "12", "12:1", "amd-5"}));
  for (std::size_t n = 0; n < devices.size(); ++n) {
    DeviceInfo info;
    set_numbers(info, keys[n]);
    EXPECT_EQ(info.index, devices[n].index) << keys[n];
    EXPECT_EQ(info.instance_of, devices[n].instance_of) << keys[n];
  }
}

// A file written by another program may have any.
TEST(DeviceKeys, OtherWordsHaveNoNumbers) {
  for (const char* key : {"", "cpu", ":", "1:", ":1", "1:x", "-", "99999999999", "1 "}) {
    DeviceInfo info;
    info.index = 7;
    set_numbers(info, key);
    EXPECT_EQ(info.index, 7U) << key;
    EXPECT_FALSE(info.instance_of) << key;
  }
}

}  // namespace
}  // namespace tidemark
