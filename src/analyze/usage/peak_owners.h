// What a recording knows of the owners of its memory, in short: for commands that go on with an overview.
#pragma once

#include <memory>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/usage/breakdown.h"

namespace tidemark {

struct PeakOwners {
  std::shared_ptr<const Breakdown> breakdown;  ///< at the peak; null where the recording has no data of its own for it
  std::vector<std::vector<Advice>> advice;     ///< by index into Overview::devices; empty likewise
};

}  // namespace tidemark
