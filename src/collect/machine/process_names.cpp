#include "collect/machine/process_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "collect/machine/files.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

std::string folder_of(std::int64_t pid, const std::string& root) {
  return fmt::format("{}/proc/{}", root, pid);
}

bool has_gpu_open(std::int64_t pid, const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(pid, root) + "/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(entry->path(), gone).string().rfind("/dev/nvidia", 0) == 0) return true;
  }
  return false;
}

std::vector<std::string> arguments_of(const std::string& command_line) {
  std::vector<std::string> arguments;
  std::size_t start = 0;
  while (start < command_line.size()) {
    const std::size_t end = std::min(command_line.find('\0', start), command_line.size());
    arguments.push_back(command_line.substr(start, end - start));
    start = end + 1;
  }
  return arguments;
}

}  // namespace

bool in_first_pid_namespace(const std::string& root) {
  // PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h.
  std::error_code error;
  return fs::read_symlink(root + "/proc/self/ns/pid", error).string() == "pid:[4026531836]";
}

std::string short_command(std::int64_t pid, const std::string& root) {
  const auto arguments = arguments_of(read_file(folder_of(pid, root) + "/cmdline").value_or(""));
  // Kernel threads and zombies have no command line.
  if (arguments.empty()) return trimmed(read_file(folder_of(pid, root) + "/comm").value_or(""));
  std::string text = fs::path(arguments.front()).filename().string();
  if (text.rfind("python", 0) != 0) return text;
  for (std::size_t n = 1; n < arguments.size(); ++n) {
    if (arguments[n] == "-c") return text + " -c";
    if (arguments[n] == "-m" && n + 1 < arguments.size()) return text + " -m " + arguments[n + 1];
    if (arguments[n].rfind('-', 0) != 0) return text + " " + fs::path(arguments[n]).filename().string();
  }
  return text;
}

void name_process(SampledProcess& process, const std::string& root) {
  const bool first = in_first_pid_namespace(root);
  process.name.clear();
  std::error_code error;
  if (!fs::exists(folder_of(process.pid, root), error)) {
    process.kind = first ? ProcessKind::ended : ProcessKind::other_namespace;
  } else if (!first && !has_gpu_open(process.pid, root)) {
    process.kind = ProcessKind::other_namespace;
  } else {
    process.name = short_command(process.pid, root);
    process.kind = process.name.empty() ? ProcessKind::ended : ProcessKind::other;
  }
}

}  // namespace tidemark
