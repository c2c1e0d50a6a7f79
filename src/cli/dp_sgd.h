// tidemark sweep --preset dp-sgd: fine-tunes a language model with DP-SGD, with presets/dp_sgd.py, in place of a
// PROGRAM.
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

/// Arguments of the command line besides the options of the preset.
struct PresetCall {
  std::string python;                  ///< path of the interpreter that the program runs in
  std::optional<std::uint64_t> ranks;  ///< processes of the program, started by torch.distributed.run; nullopt: the
                                       ///< program itself
  std::string folder;                  ///< for the results
};

struct PresetProgram {
  std::vector<std::string> command;
  std::vector<VariedArgument> arguments;
  KeepsCombination keeps;
  /// See SweepRequest::check.
  std::function<Result<void>(const std::string& folder)> check;
};

class DpSgdPreset {
 public:
  static constexpr const char* kName = "dp-sgd";
  static constexpr const char* kFolder = "results";                   ///< for the results, by default
  static constexpr const char* kCurves = "memory_analysis_overview";  ///< names of the sweep's pictures, without
  static constexpr const char* kFits = "memory_heatmap";              ///< their endings

  /// Adds --preset and the options that come with it; both outlive the command line. `folder`: variable of the folder
  /// for the results, for an option of another name.
  DpSgdPreset(CommandLine& app, std::string& folder);

  /// Whether --preset names it; fails if one of its options was given without it. Call after parsing.
  [[nodiscard]] Result<bool> chosen() const;
  /// Checks the options, and writes the program's input into the folder: its model's configuration.
  [[nodiscard]] Result<PresetProgram> program(const PresetCall& call) const;
  /// Writes its files into the folder. `plot` is "png", "svg" or "none". Returns the text below the table.
  [[nodiscard]] Result<std::string> write(const Sweep& sweep, const std::string& folder, const std::string& plot) const;

 private:
  /// A varied argument: the option here, and dp_sgd.py's option, which also names the column.
  struct VariedOption {
    const char* name;
    const char* option;
    std::vector<std::string> values;
    const char* words;  // "" for numbers
    const char* help;
  };

  static std::vector<VariedOption> varied_options();
  [[nodiscard]] std::string model_words() const { return config_.empty() ? model_name_ : config_; }
  [[nodiscard]] Result<std::vector<VariedArgument>> arguments() const;
  [[nodiscard]] Result<void> check(const PresetCall& call, const std::vector<std::string>& clipping) const;
  [[nodiscard]] Result<std::string> write_model_config(const PresetCall& call) const;

  const CommandLine& app_;
  std::string preset_;
  std::vector<VariedOption> varied_ = varied_options();
  std::string model_name_ = "meta-llama/Meta-Llama-3-8B";
  std::string config_;
  std::string token_;
  std::string wrap_ = "none";
  std::string dtype_ = "bf16";
  std::uint64_t steps_ = 5;
};

}  // namespace tidemark::cli
