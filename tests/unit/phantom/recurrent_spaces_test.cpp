#include "phantom/libraries/recurrent_spaces.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "phantom/libraries/convolution.h"

namespace tidemark::phantom {
namespace {

// Numbers of each line of a file of tests/data/phantom.
std::vector<std::vector<std::int64_t>> lines_of(const std::string& name) {
  std::ifstream file(std::string(TIDEMARK_PHANTOM_DATA) + "/" + name);
  std::vector<std::vector<std::int64_t>> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::vector<std::int64_t>& numbers = lines.emplace_back();
    for (std::int64_t number = 0; words >> number;) numbers.push_back(number);
  }
  return lines;
}

TEST(RecurrentSpaces, EqualThoseOfADevice) {
  std::size_t calls = 0;
  for (const std::vector<std::int64_t>& line : lines_of("recurrent_spaces.txt")) {
    ASSERT_EQ(line.size(), 17U);
    const auto n = [&line](std::size_t column) { return static_cast<std::uint64_t>(line[column]); };
    const RecurrentNetwork network = {.cell = static_cast<Cell>(n(1)),
                                      .algorithm = static_cast<RecurrentAlgorithm>(n(0)),
                                      .type = static_cast<int>(n(3)),
                                      .bidirectional = n(2) == 1,
                                      .dropout = n(8) == 1,
                                      .padded = n(9) == 1,
                                      .inputs = n(4),
                                      .hidden = n(5),
                                      .outputs = n(6),
                                      .layers = n(7)};
    const SequenceBatch batch = {.steps = n(10), .sequences = n(11), .tokens = n(12)};
    const std::array<std::uint64_t, 4> sizes = {weight_bytes(network), training_workspace(network, batch),
                                                reserve_bytes(network, batch), inference_workspace(network, batch)};
    EXPECT_EQ(sizes, (std::array<std::uint64_t, 4>{n(13), n(14), n(15), n(16)})) << ::testing::PrintToString(line);
    ++calls;
  }
  EXPECT_EQ(calls, 581U);
}

TEST(RecurrentSpaces, WeightsAreWhereADeviceHasThem) {
  constexpr std::size_t kMatrices = 9;
  std::size_t networks = 0;
  for (const std::vector<std::int64_t>& line : lines_of("recurrent_weights.txt")) {
    ASSERT_GT(line.size(), 7U);
    const auto n = [&line](std::size_t column) { return static_cast<std::uint64_t>(line[column]); };
    const RecurrentNetwork network = {.cell = static_cast<Cell>(n(0)),
                                      .type = static_cast<int>(n(2)),
                                      .bidirectional = n(1) == 1,
                                      .inputs = n(3),
                                      .hidden = n(4),
                                      .outputs = n(5),
                                      .layers = n(6)};
    const std::uint64_t layers = network.layers * network.directions();
    ASSERT_EQ(line.size(), 7 + layers * kMatrices * 2);
    for (std::uint64_t layer = 0; layer < layers; ++layer)
      for (std::uint64_t matrix = 0; matrix < kMatrices; ++matrix) {
        const std::size_t column = 7 + 2 * (layer * kMatrices + matrix);
        const std::uint64_t bytes = element_bytes(network.type);
        if (line[column] >= 0) {
          EXPECT_EQ(matrix_of(network, layer, matrix).offset * bytes, n(column));
        }
        if (line[column + 1] >= 0) {
          EXPECT_EQ(bias_of(network, layer, matrix).offset * bytes, n(column + 1));
        }
      }
    ++networks;
  }
  EXPECT_EQ(networks, 20U);
}

// All matrices of a layer: what PyTorch multiplies to get the sizes of its views.
TEST(RecurrentSpaces, MatricesHaveTheirSizes) {
  const RecurrentNetwork network = {
      .cell = Cell::lstm, .bidirectional = true, .inputs = 5, .hidden = 7, .outputs = 3, .layers = 2};
  const auto sizes = [&network](std::uint64_t layer, std::uint64_t matrix) {
    const WeightPlace place = matrix_of(network, layer, matrix);
    return std::pair(place.rows, place.columns);
  };
  using Sizes = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(sizes(1, 0), Sizes(7, 5));
  EXPECT_EQ(sizes(2, 3), Sizes(7, 6));
  EXPECT_EQ(sizes(2, 4), Sizes(7, 3));
  EXPECT_EQ(sizes(3, 8), Sizes(3, 7));
}

}  // namespace
}  // namespace tidemark::phantom
