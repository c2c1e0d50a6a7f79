// Files that other tools open, made from any store. A new format is one file and one line in formats.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analyze/attribution/attribution.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/moment.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// Takes the bytes of a file, piece by piece and in order.
using ByteOutput = std::function<Result<void>(std::string_view)>;

/// Bytes that a format gathers before it passes them to its output.
inline constexpr std::size_t kOutputPiece = std::size_t{1} << 18;

struct ExportOptions {
  std::optional<std::string> device;         ///< only this one: "cuda:0"
  Moment moment;                             ///< for the formats that show one moment
  const Attribution* attribution = nullptr;  ///< null: files contain no categories and modules
  /// Receives hints for users of the file: a sentence, without a full stop.
  std::function<void(const std::string&)> tell = [](const std::string&) {};
  BlockFilter filter = {};    ///< selects the blocks, or the blocks to sum up
  bool whole_stacks = false;  ///< csv: the column `stack`, which is most of a file, beside the call site
};

struct ExportFormat {
  const char* name;         ///< as in --to
  const char* description;  ///< a few words: programs that open it
  const char* suffix;       ///< of a file's usual name, with its dot
  bool binary;              ///< does not belong on a terminal
  bool one_moment;          ///< whether ExportOptions::moment means something
  /// Writes the whole file. Fails if the requested device does not exist, if there is nothing that the format can show,
  /// or with the output's error.
  Result<void> (*write)(const Store& store, Symbols& symbols, const ExportOptions& options, const ByteOutput& output,
                        const Progress& progress);
};

/// In the order of help.
std::span<const ExportFormat> export_formats();

}  // namespace tidemark
