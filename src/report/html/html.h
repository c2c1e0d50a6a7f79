// Reports as one HTML page that needs nothing else: no network, no other file, no script for what matters.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/html/page_contents.h"

namespace tidemark {

/// What a page may weigh at most, so that it can be mailed and opened on a phone.
inline constexpr std::size_t kMaxHtmlBytes = 15'000'000;

/// One page for all of them, in the order of compare_ranks(): a table of them, and one at a time. Lists are shortened,
/// and the page says so, until it is small enough. Fails when that cannot be reached: for hundreds of recordings.
Result<std::string> to_html(std::vector<html::PageContents> contents);

}  // namespace tidemark
