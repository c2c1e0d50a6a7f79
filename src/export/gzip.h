// The gzip format (RFC 1952), for files whose readers require it.
#pragma once

#include <string>
#include <string_view>

namespace tidemark {

/// Without a name and time: equal bytes give an equal file.
[[nodiscard]] std::string gzip(std::string_view bytes);

}  // namespace tidemark
