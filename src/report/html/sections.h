// The sections of a page about one recording, in their order. `id` begins the ids of the elements in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/usage/ranks.h"
#include "report/html/page_contents.h"

namespace tidemark::html {

/// The out-of-memory error of a failed run, in a line; nothing for other runs.
void add_verdict(std::string& out, const PageContents& contents);
void add_summary(std::string& out, const PageContents& contents, const std::string& id);
/// Owners of the memory at the peak; empty if unknown.
void add_breakdown(std::string& out, const PageContents& contents, const std::string& id);
void add_timeline(std::string& out, const PageContents& contents, const std::string& id);
void add_ledger(std::string& out, const PageContents& contents, const std::string& id);
void add_peak(std::string& out, const PageContents& contents, const std::string& id);
void add_flame_graph(std::string& out, const PageContents& contents, const std::string& id);
void add_segment_map(std::string& out, const PageContents& contents, const std::string& id);
void add_findings(std::string& out, const PageContents& contents, const std::string& id);
/// One section for each of contents.tables.
void add_tables(std::string& out, const PageContents& contents, const std::string& id);

/// A part of the findings: causes of out-of-memory errors.
void add_failures(std::string& out, const Explanation& explanation);
/// At most three changes with which a failed request would have succeeded; empty if none is known.
void add_ranked_fixes(std::string& out, const OomFailure& failure);

/// Data for programs: all the results as one JSON document. docs/commands/report.md describes it. `ranks`: for several
/// recordings.
std::string data_block(const std::vector<PageContents>& pages, const RankComparison* ranks);

/// page.css and page.js, which the build embeds (cmake/embed_page.cmake).
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;
/// "sha256-...", as a Content-Security-Policy names the script: of the bytes between <script> and </script>.
extern const std::string_view kPageScriptHash;

}  // namespace tidemark::html
