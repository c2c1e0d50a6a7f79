// Commands that are part of Tidemark's Python package: the program starts them in an interpreter that has it.
#pragma once

#include <string>
#include <vector>

namespace tidemark::cli {

/// Becomes the interpreter that runs `module`, such as "tidemark.mcp", with these arguments. Returns only by an error,
/// with the exit code, after it said why on stderr.
///
/// `python`: an interpreter; empty: the one in TIDEMARK_PYTHON, which the package's own `tidemark` sets, else python3.
int run_package_command(const std::string& python, const std::string& module,
                        const std::vector<std::string>& arguments);

}  // namespace tidemark::cli
