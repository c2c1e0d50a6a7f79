// How a page that became too large gets smaller.
#pragma once

#include <cstddef>

#include "report/html/page_contents.h"

namespace tidemark::html {

/// Makes every list half as long; what is left out is counted as elsewhere. False when nothing could be left out any
/// more.
bool halve(PageContents& contents);

/// Keeps the first `kept` segments of a map.
void leave_out(PageMap& map, std::size_t kept);

}  // namespace tidemark::html
