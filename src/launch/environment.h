// The environment in which a program is recorded, besides what the recorder itself adds (Recorder::environment()).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tidemark {

/// Path of one of our libraries: beside this program in ../lib, as installed and in the build folder, or in the
/// program's own folder.
[[nodiscard]] Result<std::string> find_own_library(const std::string& name);
/// Where this code runs inside another program than tidemark: what is found is beside `program`. Call before the
/// others.
void set_own_program(const std::string& program);

/// Path of one of our files that belong to no machine, such as presets/dp_sgd.py: in ../share/tidemark, likewise.
[[nodiscard]] Result<std::string> find_own_file(const std::string& name);

/// Path of the library that recorded programs preload.
[[nodiscard]] Result<std::string> find_preload_library();

/// "LD_PRELOAD=..." that loads `library` before whatever the environment preloads already.
[[nodiscard]] std::string preload_variable(const std::string& library);

struct LaunchOptions {
  bool preload = true;  ///< false: the program loads the library itself, by its path in TIDEMARK_LIBRARY
  bool driver = false;  ///< the CUDA driver loads the library too, so that its memory calls are recorded
  std::vector<std::string> behind = {};  ///< libraries that are preloaded behind it
};

struct LaunchEnvironment {
  std::vector<std::string> variables;  ///< "NAME=value"
  /// CUDA_INJECTION64_PATH of this process where it names another tool's library, which stays: the memory calls of the
  /// CUDA driver cannot be recorded then. Empty otherwise.
  std::string other_injection;
};

/// `library`: see find_preload_library().
[[nodiscard]] LaunchEnvironment launch_environment(const std::string& library, const LaunchOptions& options);

}  // namespace tidemark
