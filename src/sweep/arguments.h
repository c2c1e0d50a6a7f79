// The arguments of a program that a sweep varies: as they are given, and how they get into its command line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/sweep/fit.h"
#include "analyze/sweep/trial.h"
#include "base/result.h"

namespace tidemark {

/// More values than these are a mistake.
inline constexpr std::size_t kMaxValues = 4096;
/// The highest value of --fit without a range.
inline constexpr std::uint64_t kHighestFit = 1 << 20;

/// "128,512,2048": each value once.
[[nodiscard]] Result<std::vector<std::string>> parse_list(std::string_view text);

/// "NAME[=OPTION]=VALUES", such as "seq=128,512,2048" or "batch=--batch-size=1..64": a list; a range, which stands for
/// its beginning times powers of two, and its end; or a range with a step, "8..64:8".
[[nodiscard]] Result<VariedArgument> parse_varied(std::string_view text);

struct FittedArgument {
  VariedArgument argument;  ///< without values
  ValueRange range;
};

/// "NAME[=OPTION][=LOW..HIGH[:STEP]]", such as "batch=--batch-size".
[[nodiscard]] Result<FittedArgument> parse_fitted(std::string_view text);

/// A program with placeholders, and the arguments that fill them.
class VariedProgram {
 public:
  /// Fails for a placeholder that no argument fills, and for two arguments of one name. "{{name}}" is "{name}" itself.
  static Result<VariedProgram> create(std::vector<std::string> command, std::vector<VariedArgument> arguments);

  [[nodiscard]] const std::vector<std::string>& command() const { return command_; }
  [[nodiscard]] const std::vector<VariedArgument>& arguments() const { return arguments_; }
  /// The command with these values, one for each argument: replaces the placeholder {NAME} if the program has it,
  /// otherwise sets the value of the option, which is appended if it is missing.
  [[nodiscard]] std::vector<std::string> with(std::span<const std::string> values) const;

 private:
  VariedProgram(std::vector<std::string> command, std::vector<VariedArgument> arguments)
      : command_(std::move(command)), arguments_(std::move(arguments)) {}

  std::vector<std::string> command_;
  std::vector<VariedArgument> arguments_;
};

}  // namespace tidemark
