// A preset of `tidemark sweep`: a program of ours, with options of its own. A new one is one file, and one line in
// presets.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/sweep/sweep.h"
#include "base/result.h"
#include "cli/command_line.h"

namespace tidemark::cli {

/// What the command line says beside the preset's own options.
struct PresetCall {
  std::string python;                  ///< path of the interpreter that the program runs in
  std::optional<std::uint64_t> ranks;  ///< processes of the program, by torch.distributed.run; none: itself
  std::string folder;                  ///< for the results
};

struct PresetProgram {
  std::vector<std::string> command;
  std::vector<VariedArgument> arguments;
  KeepsCombination keeps;
  /// See SweepRequest::check.
  std::function<Result<void>(const std::string& folder)> check;
};

class Preset {
 public:
  Preset() = default;
  Preset(const Preset&) = delete;
  Preset& operator=(const Preset&) = delete;
  virtual ~Preset() = default;

  /// `folder`: variable of the folder for the results, for an option of another name.
  virtual void add_options(CommandLine& app, std::string& folder) = 0;
  /// Checks the options, and makes ready what the program needs.
  virtual Result<PresetProgram> program(const PresetCall& call) const = 0;
  /// Writes its own files into the folder. `plot` is "png", "svg" or "none". Returns what is printed below the table.
  virtual Result<std::string> write(const Sweep& sweep, const std::string& folder, const std::string& plot) const = 0;
};

}  // namespace tidemark::cli
