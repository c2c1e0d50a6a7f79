#include "launch/environment.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <system_error>

#include "collect/ring/layout.h"

namespace tidemark {

namespace {

// The tidemark program; usually the running one: without /proc, by the path in argv[0].
std::string& own_program() {
  static std::string program =
      ::access("/proc/self/exe", F_OK) == 0 ? "/proc/self/exe" : reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  return program;
}

// The path of the library for programs started with LaunchOptions::preload off.
constexpr char kLibraryVariable[] = "TIDEMARK_LIBRARY";

// Looks in these folders, relative to this program, in order.
Result<std::string> find_beside_program(const std::string& name, std::initializer_list<const char*> folders) {
  std::error_code error;
  const auto program = std::filesystem::canonical(own_program(), error);
  for (const char* folder : folders) {
    const auto path = (program.parent_path() / folder / name).lexically_normal();
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return Error{fmt::format("{} was not found beside {} (incomplete installation)", name, program.string())};
}

}  // namespace

void set_own_program(const std::string& program) {
  own_program() = program;
}

Result<std::string> find_own_library(const std::string& name) {
  return find_beside_program(name, {"../" TIDEMARK_LIBDIR, "../lib", "."});
}

Result<std::string> find_own_file(const std::string& name) {
  return find_beside_program(name, {"../" TIDEMARK_DATADIR "/tidemark", "../share/tidemark"});
}

Result<std::string> find_preload_library() {
  return find_own_library("libtidemark_preload.so");
}

std::string preload_variable(const std::string& library) {
  const char* before = std::getenv("LD_PRELOAD");
  return before == nullptr || *before == '\0' ? "LD_PRELOAD=" + library
                                              : fmt::format("LD_PRELOAD={}:{}", library, before);
}

LaunchEnvironment launch_environment(const std::string& library, const LaunchOptions& options) {
  LaunchEnvironment environment;
  environment.variables.push_back(fmt::format("{}={}", kLibraryVariable, library));
  std::vector<std::string> libraries = {library};
  libraries.insert(libraries.end(), options.behind.begin(), options.behind.end());
  if (options.preload) {
    environment.variables.push_back(preload_variable(fmt::format("{}", fmt::join(libraries, ":"))));
  }
  if (!options.driver) return environment;
  const char* other = std::getenv(ring::kInjectionVariable);
  if (other == nullptr || *other == '\0') {
    environment.variables.push_back(fmt::format("{}={}", ring::kInjectionVariable, library));
  } else {
    environment.other_injection = other;
  }
  return environment;
}

}  // namespace tidemark
