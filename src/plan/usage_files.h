// What the processes of a plan wrote into the phantom's folder.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "phantom/gpu/usage_file.h"

namespace tidemark {

struct UsageOfProcess {
  pid_t pid = 0;
  std::unique_ptr<phantom::UsageFile> file;
};

/// A copy of each process's file, of those that have ended too; in no particular order.
[[nodiscard]] std::vector<UsageOfProcess> read_usage_files(const std::string& folder);

}  // namespace tidemark
