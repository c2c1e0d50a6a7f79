// Labelled runs from a file: series of real programs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "labelled_run.h"

namespace tidemark::detectors {

/// Reads the output of make_recorded.py (.csv.xz): a line "run,NAME,LIMIT_KIB,LEAKS,LIMIT_AT_MS,GROWS_FROM_MS,STEP_MS",
/// with empty fields for missing values, before lines of "TIME_MS,USED_KIB,PEAK_KIB". Fails if the file cannot be read
/// or a line has another form.
[[nodiscard]] Result<std::vector<LabelledRun>> read_recorded(const std::string& path);

}  // namespace tidemark::detectors
