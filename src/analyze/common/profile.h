// Live and total allocated memory of each stack: the profile of a recording, for tools that show stacks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/moment.h"
#include "base/result.h"
#include "store/store.h"

namespace tidemark {

struct ProfileOptions {
  std::optional<std::string> device;  ///< only this one: "cuda:0"
  Moment moment;
  const Attribution* attribution = nullptr;  ///< null: stacks are not split by owner
  BlockFilter filter = {};
};

struct ProfileStack {
  StackId stack;  ///< invalid: blocks recorded without a stack
  Owner owner;    ///< with an attribution: module, phase, component and category of these blocks
  std::uint64_t held_bytes = 0;
  std::uint64_t held_blocks = 0;       ///< alive at the moment
  std::uint64_t allocated_bytes = 0;   ///< traffic: of all blocks, from the first event to the last
  std::uint64_t allocated_blocks = 0;  ///< number of blocks allocated
};

struct ProfileDevice {
  Device device;
  std::optional<std::uint64_t> at_ns;  ///< nullopt: the peak of a device on which nothing was allocated
  std::vector<ProfileStack> stacks;  ///< most held bytes first, then most allocated; never 0 allocated blocks. With an
                                     ///< attribution a stack has one for each owner
  std::uint64_t held_bytes = 0;      ///< of all stacks
  std::uint64_t unrecorded_bytes = 0;  ///< allocated at the moment, but in no recorded block
};

/// One entry for each device, in the recording's order. Fails only when the recording does not contain the requested
/// device.
Result<std::vector<ProfileDevice>> analyze_profile(const Store& store, const ProfileOptions& options);

}  // namespace tidemark
