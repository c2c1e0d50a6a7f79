#include "cli/sweep_program.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "launch/interpreter_probe.h"
#include "plan/ranks_command.h"
#include "sweep/arguments.h"

namespace tidemark::cli {
namespace {

constexpr std::uint64_t kMaxRanks = 64;

Result<SweptProgram> own_program(const SweepOptions& options) {
  if (options.command.empty()) return Error{"name the PROGRAM, or one that comes with Tidemark by --preset"};
  if (options.varied.empty()) return Error{"name an argument of the program and its values with --vary"};
  SweptProgram program;
  program.command = options.command;
  program.passed_on = options.passed_on;
  for (const std::string& text : options.varied) {
    auto argument = parse_varied(text);
    if (!argument) return Error{"--vary " + argument.error().message};
    program.arguments.push_back(std::move(*argument));
  }
  return program;
}

// Takes out an option that would be passed on; the value that was given last.
std::optional<std::string> take_option(std::vector<std::string>& words, const std::string& name) {
  std::optional<std::string> value;
  std::erase_if(words, [&](const std::string& word) {
    const bool same = word.starts_with(name + "=");
    if (same) value = word.substr(name.size() + 1);
    return same;
  });
  return value;
}

// Each trial runs to the program's own end.
Result<SweptProgram> preset_program(const SweepOptions& options, const ListedPreset& listed) {
  if (!options.command.empty()) return Error{options.command.front() + ": no PROGRAM is given with --preset"};
  if (!options.varied.empty()) return Error{"--vary: not with --preset, which has options of its own"};
  SweptProgram program;
  program.passed_on = options.passed_on;
  if (take_option(program.passed_on, "--steps"))
    return Error{"--steps: not with --preset, whose trials run to their end"};
  PresetCall call{"", std::nullopt, options.folder};
  const std::string python = take_option(program.passed_on, "--python").value_or("python3");
  const auto interpreter = interpreter_of(python);
  if (!interpreter) return Error{fmt::format("{}: no Python interpreter; name one with --python", python)};
  call.python = *interpreter;
  if (const auto ranks = take_option(program.passed_on, "--nproc")) {
    const auto number = number_of(*ranks);
    if (!number || *number < 1 || *number > kMaxRanks)
      return Error{fmt::format("--nproc {}: from 1 to {}", *ranks, kMaxRanks)};
    call.ranks = static_cast<std::uint64_t>(*number);
  }
  auto preset = listed.preset->program(call);
  if (!preset) return preset.error();
  static_cast<PresetProgram&>(program) = std::move(*preset);
  if (call.ranks) {
    auto ranks = ranks_command(program.command, call.python, *call.ranks);
    if (!ranks) return ranks.error();
    program.command = std::move(*ranks);
  }
  if (options.on == "real") return program;
  program.passed_on.emplace_back("--steps=0");
  if (call.ranks) program.passed_on.push_back(fmt::format("--devices={}", *call.ranks));
  return program;
}

}  // namespace

Result<SweptProgram> swept_program(const SweepOptions& options, const ListedPreset* preset) {
  return preset != nullptr ? preset_program(options, *preset) : own_program(options);
}

}  // namespace tidemark::cli
