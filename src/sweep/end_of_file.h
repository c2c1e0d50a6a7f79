// What a trial wrote last.
#pragma once

#include <string>

namespace tidemark {

/// The last MiB of a file, as programs may write much; empty where it cannot be read.
[[nodiscard]] std::string end_of_file(const std::string& path);

}  // namespace tidemark
