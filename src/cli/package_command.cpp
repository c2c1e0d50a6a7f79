#include "cli/package_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "cli/command.h"
#include "launch/interpreter_probe.h"

namespace tidemark {

extern const char kPackageStart[];

namespace cli {

int run_package_command(const std::string& python, const std::string& module,
                        const std::vector<std::string>& arguments) {
  const char* const own = std::getenv("TIDEMARK_PYTHON");
  const std::string name = !python.empty() ? python : own == nullptr || *own == '\0' ? "python3" : own;
  const auto interpreter = interpreter_of(name);
  if (!interpreter) {
    return fail(fmt::format("{}: no Python interpreter; name the one that has Tidemark's package with {}", name,
                            python.empty() ? "the variable TIDEMARK_PYTHON" : "--python"));
  }
  std::vector<std::string> words = {*interpreter, "-c", kPackageStart, module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  std::ranges::transform(words, std::back_inserter(pointers), [](std::string& word) { return word.data(); });
  pointers.push_back(nullptr);
  ::execv(interpreter->c_str(), pointers.data());
  return fail(fmt::format("{}: {}", *interpreter, std::strerror(errno)));
}

}  // namespace cli
}  // namespace tidemark
