// What `tidemark sweep --preset dp-sgd` writes beside the files of every sweep.
#pragma once

#include <string>

#include "analyze/sweep/sweep.h"
#include "base/result.h"

namespace tidemark::cli {

/// Returns what is printed below the table. See Preset::write().
Result<std::string> write_dp_sgd_files(const Sweep& sweep, const std::string& model, const std::string& folder,
                                       const std::string& plot);

}  // namespace tidemark::cli
