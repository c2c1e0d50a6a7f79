// The environment in which a program is recorded, without the variables that the recorder adds
// (Recorder::environment()).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// Path of a Tidemark library: beside this program in ../lib, as installed and in the build folder, or in the program's
/// own folder.
[[nodiscard]] Result<std::string> find_own_library(const std::string& name);
/// If this code runs inside another program than tidemark: look for files beside `program`. Call it before the other
/// functions.
void set_own_program(const std::string& program);

/// Path of a Tidemark file that is independent of the architecture, such as presets/dp_sgd.py: in ../share/tidemark or
/// beside the program.
[[nodiscard]] Result<std::string> find_own_file(const std::string& name);

/// Path of the library that recorded programs preload.
[[nodiscard]] Result<std::string> find_preload_library();

/// "LD_PRELOAD=..." that loads `library` before the libraries that the environment preloads already.
[[nodiscard]] std::string preload_variable(const std::string& library);

struct LaunchOptions {
  bool preload = true;  ///< false: the program loads the library itself, by its path in TIDEMARK_LIBRARY
  bool driver = false;  ///< the CUDA driver loads the library too, so that its memory calls are recorded
  std::vector<std::string> behind = {};  ///< libraries that are preloaded after it
};

struct LaunchEnvironment {
  std::vector<std::string> variables;  ///< "NAME=value"
  /// CUDA_INJECTION64_PATH of this process if it names another tool's library, which is kept: the memory calls of the
  /// CUDA driver cannot be recorded then. Empty otherwise.
  std::string other_injection;
};

/// `library`: see find_preload_library().
[[nodiscard]] LaunchEnvironment launch_environment(const std::string& library, const LaunchOptions& options);

}  // namespace tidemark
