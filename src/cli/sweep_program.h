// What `tidemark sweep` runs: the PROGRAM of the command line, or that of a preset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/presets/presets.h"

namespace tidemark::cli {

struct SweepOptions {
  std::vector<std::string> varied;
  std::string gpus = "auto";
  std::string on = "phantom";
  std::string folder;
  std::uint64_t jobs = 0;
  std::uint64_t budget = 0;
  bool retry = false;
  std::string plot = "png";
  std::string format = "text";
  std::vector<std::string> passed_on;  // to each plan, as words
  std::uint64_t memory_bytes = 0;
  std::vector<std::string> command;
};

/// What is swept: the PROGRAM of the command line, or that of a preset.
struct SweptProgram : PresetProgram {
  std::vector<std::string> passed_on;  // to each plan
};

/// `preset`: null for PROGRAM.
Result<SweptProgram> swept_program(const SweepOptions& options, const ListedPreset* preset);

}  // namespace tidemark::cli
