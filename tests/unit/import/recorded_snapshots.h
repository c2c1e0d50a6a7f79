// The snapshots that PyTorch recorded on GPUs, for tests with parameters.
//
// tests/data/snapshots: one for each setting of the allocator, recorded by scripts/record_snapshots.py.
// ../shared/data/snapshots: larger ones, which are not always there. TIDEMARK_MORE_SNAPSHOTS names a folder with
// others.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "import/pytorch_snapshot/replay/replay.h"

namespace tidemark::pytorch::testing {

/// Paths without suffix: .pickle.xz is the snapshot, .truth.json the counters of the allocator.
std::vector<std::string> snapshots_of_settings();
std::vector<std::string> shared_snapshots(std::initializer_list<const char*> names);
std::vector<std::string> more_snapshots();

/// A test of one of them, skipped if the file is absent.
class RecordedSnapshot : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
};

/// For INSTANTIATE_TEST_SUITE_P.
std::string test_name(const ::testing::TestParamInfo<std::string>& info);

nlohmann::json truth_of(const std::string& path);

/// Whether totals are equal, up to the bytes that the replay reports as uncertain.
bool agree(const MemoryTotals& actual, const MemoryTotals& expected, std::uint64_t uncertain);

}  // namespace tidemark::pytorch::testing
