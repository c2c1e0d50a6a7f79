#include "collect/machine/process_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "collect/machine/files.h"
#include "collect/machine/processes.h"

namespace tidemark {
namespace {

struct StatFields {
  std::int64_t parent = -1;
  std::uint64_t started = 0;
};

// After "pid (name) ", in which the name may contain anything, come the state, the parent and, as field 20, the start.
std::optional<StatFields> read_stat(std::int64_t pid, const std::string& root) {
  const std::string text = read_file(fmt::format("{}/proc/{}/stat", root, pid)).value_or("");
  std::size_t at = text.rfind(')');
  if (at == std::string::npos) return std::nullopt;
  StatFields fields;
  for (int field = 0; field < 20; ++field) {
    at = text.find(' ', at + 1);
    if (at == std::string::npos) return std::nullopt;
    const auto value = leading_number(text.substr(at + 1, 24));
    if (field == 1) fields.parent = static_cast<std::int64_t>(value.value_or(0));
    if (field == 19) fields.started = value.value_or(0);
  }
  return fields;
}

// The value of a variable in the environment that the process was started with.
std::optional<std::uint32_t> variable(const std::string& environment, std::string_view name) {
  const std::string entry = std::string(1, '\0') + std::string(name) + "=";
  const std::string all = std::string(1, '\0') + environment;
  const std::size_t at = all.find(entry);
  if (at == std::string::npos) return std::nullopt;
  const auto value = leading_number(all.substr(at + entry.size(), 12));
  return value && *value <= 0x7fffffff ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// By the command lines that Python's multiprocessing, torch.compile and torchrun use.
std::optional<ProcessRole> role_by_command(const std::string& command) {
  if (has(command, "multiprocessing.resource_tracker") || has(command, "multiprocessing.semaphore_tracker")) {
    return ProcessRole::resource_tracker;
  }
  if (has(command, "multiprocessing.forkserver")) return ProcessRole::fork_server;
  if (has(command, "_inductor/compile_worker")) return ProcessRole::compile_worker;
  if (has(command, "torch.distributed.run") || has(command, "torch.distributed.launch") || has(command, "/torchrun") ||
      command.starts_with("torchrun")) {
    return ProcessRole::launcher;
  }
  return std::nullopt;
}

}  // namespace

ProcessRoles::Known ProcessRoles::identify(std::int64_t pid, std::uint64_t started, std::int64_t parent) const {
  constexpr std::size_t kMaxCommand = 4096;
  const std::string folder = fmt::format("{}/proc/{}", root_, pid);
  Known process;
  process.started = started;
  process.parent = parent;
  process.command = read_file(folder + "/cmdline").value_or("").substr(0, kMaxCommand);
  std::replace(process.command.begin(), process.command.end(), '\0', ' ');
  process.name = short_command(pid, root_);
  const std::string environment = read_file(folder + "/environ").value_or("");
  process.rank = variable(environment, "RANK");
  process.ranks = variable(environment, "WORLD_SIZE");
  return process;
}

// A child of multiprocessing has its parent's command line if it was forked, "spawn_main(...)" if it was spawned, and
// the fork server's if that forked it. A program that the main process runs with exec has its own. Since PyTorch 2.7, a
// DataLoader worker has a distinctive name for its first thread, whatever its current parent.
void ProcessRoles::settle(Known& process, std::int64_t pid) const {
  const auto parent = known_.find(process.parent);
  const bool forked = parent != known_.end() && parent->second.command == process.command;
  const bool spawned = has(process.command, "multiprocessing.spawn") && has(process.command, "spawn_main");
  const auto by_command = role_by_command(process.command);
  process.settled = true;
  if (by_command && !(by_command == ProcessRole::fork_server && forked)) {
    process.role = *by_command;
  } else if (trimmed(read_file(fmt::format("{}/proc/{}/comm", root_, pid)).value_or("")) == "pt_data_worker") {
    process.role = ProcessRole::data_worker;
  } else if (forked || spawned) {
    process.role = ProcessRole::child;
    process.settled = false;  // it may still change its name
  } else {
    const bool python = process.name.starts_with("python");
    process.role = process.rank ? ProcessRole::rank : python ? ProcessRole::main : ProcessRole::other;
  }
}

void ProcessRoles::fill_in(std::vector<HostProcess>& job) {
  std::map<std::int64_t, Known> seen;
  for (const HostProcess& process : job) {
    const auto stat = read_stat(process.pid, root_);
    const auto before = known_.find(process.pid);
    const bool same = before != known_.end() && (!stat || before->second.started == stat->started);
    if (same) {
      seen[process.pid] = std::move(before->second);
    } else if (stat) {
      seen[process.pid] = identify(process.pid, stat->started, stat->parent);
    }
    // A shell that becomes the program with exec, or a forked child that has not called exec yet.
    Known& known = seen[process.pid];
    if (known.role == ProcessRole::other && same) {
      known = identify(process.pid, known.started, known.parent);
    }
  }
  known_ = std::move(seen);
  for (HostProcess& process : job) {
    Known& known = known_[process.pid];
    if (!known.settled || known.role == ProcessRole::other) settle(known, process.pid);
    process.parent_pid = known.parent;
    process.role = known.role;
    process.name = known.name;
    process.number.reset();
    process.count.reset();
    if (known.role == ProcessRole::rank) {
      process.number = known.rank;
      process.count = known.ranks;
    }
  }
  number_workers(job);
}

void number_workers(std::vector<HostProcess>& job) {
  std::map<std::int64_t, std::vector<HostProcess*>> by_parent;
  for (HostProcess& process : job) {
    if (process.role == ProcessRole::data_worker) by_parent[process.parent_pid].push_back(&process);
  }
  for (auto& [parent, workers] : by_parent) {
    std::sort(workers.begin(), workers.end(),
              [](const HostProcess* left, const HostProcess* right) { return left->pid < right->pid; });
    for (std::size_t n = 0; n < workers.size(); ++n) {
      workers[n]->number = static_cast<std::uint32_t>(n);
      workers[n]->count = static_cast<std::uint32_t>(workers.size());
    }
  }
}

}  // namespace tidemark
