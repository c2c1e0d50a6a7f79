#include "plan/oom_kills.h"

#include <algorithm>

#include "collect/machine/files.h"

namespace tidemark {

OomKills::OomKills(const std::string& root) : root_(root), group_(Cgroup::own(root)) {
  if (group_ && !group_->read().oom_kills) group_.reset();
  before_ = read().value_or(0);
}

std::optional<std::uint64_t> OomKills::read() const {
  if (group_) return group_->read().oom_kills;
  return number_after(read_file(root_ + "/proc/vmstat").value_or(""), "oom_kill ");
}

std::uint64_t OomKills::count() const {
  const std::uint64_t now = read().value_or(before_);
  return now - std::min(now, before_);
}

}  // namespace tidemark
