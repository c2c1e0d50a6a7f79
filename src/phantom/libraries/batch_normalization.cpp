#include "phantom/libraries/batch_normalization.h"

#include "phantom/libraries/convolution.h"
#include "phantom/libraries/measured_libraries.h"

namespace tidemark::phantom {
namespace {

// Each tile, so many channels wide and so many rows long, leaves two sums for each channel, and forward a word.
struct Tile {
  std::uint64_t channels;
  std::uint64_t rows;
};

Tile tile_of(const BatchNormalization& batch, NormalizationPass pass) {
  const bool forward = pass == NormalizationPass::forward;
  const std::uint64_t rows = !forward ? 96 : element_bytes(batch.type) == 2 ? 160 : 64;
  if (batch.channels % 8 == 0) return {64, rows};
  return batch.channels <= 4 ? Tile{4, 4 * rows} : Tile{16, rows};
}

std::uint64_t pieces(std::uint64_t whole, std::uint64_t piece) {
  return (whole + piece - 1) / piece;
}

bool is_measured(const BatchNormalization& batch) {
  const bool type = batch.type == type_named("float") || batch.type == type_named("half");
  return is_measured_cudnn() && type && (batch.channels % 8 == 0 || batch.channels == 3 || batch.channels == 30);
}

}  // namespace

NormalizationWorkspace normalization_workspace(const BatchNormalization& batch, NormalizationPass pass) {
  const Tile tile = tile_of(batch, pass);
  const std::uint64_t columns = pieces(batch.channels, tile.channels);
  const std::uint64_t tiles = columns * pieces(batch.rows, tile.rows);
  const bool forward = pass == NormalizationPass::forward;
  const std::uint64_t each = 8 * tile.channels + (forward ? 4 : 0);
  return {tiles * each + (forward ? 1072 : 1056) + 4 * columns, is_measured(batch)};
}

}  // namespace tidemark::phantom
