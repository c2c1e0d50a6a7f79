// The command that starts several ranks of a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// `python -u train.py --epochs 1` as `count` ranks on this machine: `PYTHON -u -m torch.distributed.run --standalone
/// --nproc-per-node COUNT train.py --epochs 1`. A program with a first line that names its interpreter is started by
/// that line. An error for `python -c` and for an interpreter without a program.
[[nodiscard]] Result<std::vector<std::string>> ranks_command(const std::vector<std::string>& command,
                                                             const std::string& python, std::uint64_t count);

}  // namespace tidemark
