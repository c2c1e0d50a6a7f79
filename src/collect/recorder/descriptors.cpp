#include "collect/recorder/descriptors.h"

#include <fmt/format.h>
#include <sys/resource.h>

namespace tidemark {
namespace {

unsigned long descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

unsigned long descriptors_after(int newest) {
  const unsigned long limit = descriptor_limit();
  const auto used = static_cast<unsigned long>(newest) + 1;
  return limit > used ? limit - used : 0;
}

std::string few_descriptors() {
  return fmt::format("too few file descriptors (ulimit -n {})", descriptor_limit());
}

}  // namespace tidemark
