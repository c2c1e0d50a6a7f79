#include "tui/flight_recorder.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "collect/machine/files.h"

namespace tidemark::tui {
namespace {

constexpr int kMaxAncestors = 64;

std::vector<std::string> arguments_of(const std::string& folder) {
  std::vector<std::string> arguments;
  std::string text = read_file(folder + "/cmdline").value_or("");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    arguments.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return arguments;
}

bool is_run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3 || arguments[1] != "run") return false;
  const std::string& program = arguments[0];
  return program.substr(program.rfind('/') + 1) == "tidemark";  // npos + 1 is 0
}

}  // namespace

bool dumps_on_signal(const std::vector<std::string>& arguments) {
  static constexpr std::array<std::string_view, 4> kWithValue = {"--keep", "--dump", "-o", "--output"};
  if (!is_run(arguments)) return false;
  bool keeps = false;
  bool on_signal = true;
  for (std::size_t n = 2; n < arguments.size() && arguments[n].starts_with('-') && arguments[n] != "--"; ++n) {
    const std::string& argument = arguments[n];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    const bool separate =
        equals == std::string::npos && std::find(kWithValue.begin(), kWithValue.end(), name) != kWithValue.end();
    // An unknown option's value ends the search, unless `--` marks the beginning of the program.
    const bool unknown_value =
        equals == std::string::npos && !separate && n + 1 < arguments.size() && !arguments[n + 1].starts_with('-') &&
        std::find(arguments.begin() + static_cast<std::ptrdiff_t>(n), arguments.end(), "--") != arguments.end();
    if ((separate || unknown_value) && n + 1 < arguments.size()) value = arguments[++n];
    keeps |= name == "--keep";
    if (name == "--dump") on_signal = value.find("on-signal") != std::string::npos;
  }
  return keeps && on_signal;
}

Result<std::int64_t> find_flight_recorder(std::int64_t pid, const std::string& root) {
  std::int64_t ancestor = pid;
  for (int n = 0; n < kMaxAncestors && ancestor > 1; ++n) {
    const std::string folder = fmt::format("{}/proc/{}", root, ancestor);
    const std::vector<std::string> arguments = arguments_of(folder);
    if (dumps_on_signal(arguments)) return ancestor;
    if (is_run(arguments)) {
      return Error{fmt::format("n/a: process {} is recorded whole, by process {}, without --keep", pid, ancestor)};
    }
    const auto parent = number_after(read_file(folder + "/status").value_or(""), "PPid:");
    if (!parent) break;
    ancestor = static_cast<std::int64_t>(*parent);
  }
  return Error{fmt::format("n/a: process {} has no flight recorder (tidemark run --keep 10min)", pid)};
}

Result<std::int64_t> ask_flight_recorder(std::int64_t pid) {
  auto recorder = find_flight_recorder(pid);
  if (!recorder) return recorder;
  if (::kill(static_cast<pid_t>(*recorder), SIGUSR1) != 0) {
    return Error{fmt::format("n/a: cannot signal process {}: {}", *recorder, std::strerror(errno))};
  }
  return recorder;
}

}  // namespace tidemark::tui
