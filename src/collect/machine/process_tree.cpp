#include "collect/machine/process_tree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "collect/machine/files.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

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

/// From the lists that the kernel keeps for each thread; none where it keeps none (CONFIG_PROC_CHILDREN, gVisor).
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

/// Fields 1, 2 and 4 of stat are pid, (name) and parent; the name may hold anything.
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

}  // namespace

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
  return pages ? std::optional(*pages * kPageBytes) : std::nullopt;
}

std::optional<std::uint64_t> proportional_bytes(std::int64_t pid, const std::string& root) {
  const auto kib = number_after(read_file(fmt::format("{}/proc/{}/smaps_rollup", root, pid)).value_or(""), "Pss:");
  return kib ? std::optional(*kib << 10) : std::nullopt;
}

}  // namespace tidemark
