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

/// What the command line says beside the options of the preset.
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

class DpSgdPreset {
 public:
  static constexpr const char* kName = "dp-sgd";
  static constexpr const char* kFolder = "results";                   ///< for the results, where none is named
  static constexpr const char* kCurves = "memory_analysis_overview";  ///< names of the sweep's pictures, without
  static constexpr const char* kFits = "memory_heatmap";              ///< their endings

  /// Adds --preset and the options that come with it; both outlive the command line. `folder`: variable of the folder
  /// for the results, for an option of another name.
  DpSgdPreset(CommandLine& app, std::string& folder);

  /// Whether --preset names it; an error where one of its options was given without. After parsing.
  [[nodiscard]] Result<bool> chosen() const;
  /// Checks the options, and makes ready what the program needs: its model's configuration, in the folder.
  [[nodiscard]] Result<PresetProgram> program(const PresetCall& call) const;
  /// Writes its own files into the folder. `plot` is "png", "svg" or "none". Returns what is printed below the table.
  [[nodiscard]] Result<std::string> write(const Sweep& sweep, const std::string& folder, const std::string& plot) const;

 private:
  /// An argument that varies: the option here, and that of dp_sgd.py, which names the column too.
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
