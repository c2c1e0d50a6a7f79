#include "collect/machine/processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
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

/// Names in a folder that are numbers.
std::vector<std::int64_t> numbers_in(const std::string& folder) {
  std::vector<std::int64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto number = leading_number(entry->path().filename().string());
    if (number) numbers.push_back(static_cast<std::int64_t>(*number));
  }
  return numbers;
}

/// From the kernel's list of children of each thread; std::nullopt without such lists (CONFIG_PROC_CHILDREN, gVisor).
std::optional<std::vector<std::int64_t>> listed_children(std::int64_t pid, const std::string& root) {
  std::optional<std::vector<std::int64_t>> children;
  for (const std::int64_t thread : numbers_in(fmt::format("{}/proc/{}/task", root, pid))) {
    const auto text = read_file(fmt::format("{}/proc/{}/task/{}/children", root, pid, thread));
    if (!text) continue;
    if (!children) children.emplace();
    std::istringstream list(*text);
    for (std::int64_t child = 0; list >> child;) children->push_back(child);
  }
  return children;
}

/// Fields 1, 2 and 4 of stat are pid, (name) and parent; the name may contain anything.
std::optional<std::int64_t> parent_of(std::int64_t pid, const std::string& root) {
  const std::string text = read_file(fmt::format("{}/proc/{}/stat", root, pid)).value_or("");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size()) return std::nullopt;
  const auto parent = leading_number(text.substr(name_end + 4));
  return parent ? std::optional(static_cast<std::int64_t>(*parent)) : std::nullopt;
}

std::vector<std::int64_t> by_looking_at_all(std::int64_t pid, const std::string& root) {
  std::multimap<std::int64_t, std::int64_t> children;
  for (const std::int64_t process : numbers_in(root + "/proc")) {
    if (const auto parent = parent_of(process, root)) children.emplace(*parent, process);
  }
  std::vector<std::int64_t> found = {pid};
  for (std::size_t n = 0; n < found.size(); ++n) {
    const auto [first, last] = children.equal_range(found[n]);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

std::optional<std::uint64_t> kib_after(const std::string& text, const char* key) {
  const auto kib = number_after(text, key);
  return kib ? std::optional(*kib << 10) : std::nullopt;
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

std::vector<std::int64_t> descendants_of(std::int64_t pid, const std::string& root) {
  std::vector<std::int64_t> found = {pid};
  for (std::size_t n = 0; n < found.size(); ++n) {
    const auto children = listed_children(found[n], root);
    if (!children && n == 0) return by_looking_at_all(pid, root);
    for (const std::int64_t child : children.value_or(std::vector<std::int64_t>())) {
      if (std::find(found.begin(), found.end(), child) == found.end()) found.push_back(child);
    }
  }
  found.erase(found.begin());
  return found;
}

std::optional<std::uint64_t> resident_bytes(std::int64_t pid, const std::string& root) {
  static const auto kPageBytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string text = read_file(fmt::format("{}/proc/{}/statm", root, pid)).value_or("");
  const std::size_t space = text.find(' ');  // the first number is the size of the address space
  if (space == std::string::npos) return std::nullopt;
  const auto pages = leading_number(text.substr(space + 1));
  if (pages.value_or(0) == 0) return std::nullopt;  // a zombie has no pages
  return *pages * kPageBytes;
}

ProcessPages resident_pages(std::int64_t pid, const std::string& root) {
  const std::string text = read_file(fmt::format("{}/proc/{}/status", root, pid)).value_or("");
  ProcessPages pages;
  pages.rss_bytes = kib_after(text, "VmRSS:");
  if (pages.rss_bytes.value_or(0) == 0) return {};  // a zombie has no pages
  pages.anon_bytes = kib_after(text, "RssAnon:");
  pages.file_bytes = kib_after(text, "RssFile:");
  pages.shmem_bytes = kib_after(text, "RssShmem:");
  pages.swap_bytes = kib_after(text, "VmSwap:");
  pages.locked_bytes = kib_after(text, "VmLck:");
  pages.pinned_bytes = kib_after(text, "VmPin:");
  return pages;
}

WalkedPages walked_pages(std::int64_t pid, const std::string& root) {
  const std::string text = read_file(fmt::format("{}/proc/{}/smaps_rollup", root, pid)).value_or("");
  return {kib_after(text, "Pss:"), kib_after(text, "Private_Dirty:")};
}

}  // namespace tidemark
