#include "publish/metrics/metric.h"

#include <utf8proc.h>

namespace tidemark {

std::string valid_utf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string valid;
  while (!text.empty()) {
    utf8proc_int32_t letter = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                         static_cast<utf8proc_ssize_t>(text.size()), &letter);
    if (length <= 0) {
      valid += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    valid += text.substr(0, static_cast<std::size_t>(length));
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return valid;
}

}  // namespace tidemark
