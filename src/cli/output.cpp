#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/command.h"
#include "report/words/printable.h"

namespace tidemark::cli {

int fail(const std::string& message) {
  fmt::print(stderr, "tidemark: {}\n", printable(message));  // names in it may come from a file
  return kError;
}

int print(const std::string& bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0) return kOk;
  return fail(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

}  // namespace tidemark::cli
