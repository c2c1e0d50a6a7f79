// Inputs found by fuzzing, the seeds, and quick mutations of them, run through the fuzz target in every test run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

std::vector<Input> inputs() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {TIDEMARK_SEED_FOLDERS}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == TIDEMARK_SEEDS) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> found;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    found.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return found;
}

TEST(FuzzReplay, SeedsAndFindings) {
  ASSERT_FALSE(inputs().empty());
  for (const Input& input : inputs()) LLVMFuzzerTestOneInput(input.data(), input.size());
}

TEST(FuzzReplay, MutatedSeeds) {
  std::mt19937 random(20261120);
  const auto below = [&random](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
  const std::vector<Input> seeds = inputs();
  for (const Input& seed : seeds) {
    if (seed.size() < 32) continue;
    for (std::size_t round = 0; round < TIDEMARK_MUTATIONS / seeds.size(); ++round) {
      Input input = seed;
      for (std::size_t change = 0; change <= below(4); ++change) {
        const std::size_t at = 16 + below(input.size() - 16);
        switch (below(4)) {
          case 0:
            input[at] = static_cast<std::uint8_t>(random());
            break;
          case 1:
            input[at] ^= static_cast<std::uint8_t>(1U << below(8));
            break;
          case 2:
            input[at] = 0xFF;
            break;
          default:
            input.resize(std::max<std::size_t>(at, 32));
            break;
        }
      }
      LLVMFuzzerTestOneInput(input.data(), input.size());
    }
  }
}

}  // namespace
