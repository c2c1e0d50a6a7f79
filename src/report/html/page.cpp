#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "analyze/usage/ranks.h"
#include "base/units.h"
#include "query/words/recording_text.h"
#include "report/common/text.h"
#include "report/html/markup.h"
#include "report/html/page_contents.h"
#include "report/html/sections.h"
#include "report/plot/palette.h"

namespace tidemark {
namespace {

using html::escaped;

void add_head(std::string& out, const std::vector<html::PageContents>& pages) {
  std::string title = "Memory report";
  const auto first =
      std::find_if(pages.begin(), pages.end(), [](const html::PageContents& page) { return page.is_detailed(); });
  if (first != pages.end()) title += ": " + escaped(recording_title(first->recording));
  if (pages.size() > 1) title += fmt::format(" and {} more", pages.size() - 1);
  fmt::format_to(
      std::back_inserter(out),
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src '{}'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n",
      html::kPageScriptHash, title, palette_style(), html::kPageStyle);
}

void add_facts(std::string& out, const RecordingInfo& recording) {
  out += "<dl class=\"facts\">\n";
  for (const Fact& fact : recording_facts(recording)) {
    fmt::format_to(std::back_inserter(out), "<div><dt>{}</dt><dd>{}</dd></div>\n", fact.label, escaped(fact.value));
  }
  out += "</dl>\n";
}

// For several recordings, their differences. Articles have the numbers of the rows.
void add_overview(std::string& out, const RankComparison& ranks) {
  out += "<div class=\"scroll ranks\"><table><thead><tr><th>process</th>";
  for (const char* heading : {"peak allocated", "to median", "out of memory", "reserved", "device used"}) {
    fmt::format_to(std::back_inserter(out), "<th class=\"number\">{}</th>", heading);
  }
  out += "</tr></thead><tbody>\n";
  for (std::size_t index = 0; index < ranks.rows.size(); ++index) {
    const RankRow& row = ranks.rows[index];
    const char* mark = row.outlier ? "<b class=\"alarm\">outlier</b> " : "";
    const std::string failed = row.out_of_memory ? "<b class=\"alarm\">yes</b>" : "no";
    const std::string name = escaped(rank_name(row));
    out += row.chosen.value_or(true) ? fmt::format("<tr><td><a href=\"#r{}\">{}</a></td>", index, name)
                                     : fmt::format("<tr><td>{}</td>", name);
    for (const std::string& cell : {format_bytes(row.peak_allocated_bytes), mark + difference_text(row.difference),
                                    failed, bytes_text(row.peak_reserved_bytes), bytes_text(row.device_used_bytes)}) {
      fmt::format_to(std::back_inserter(out), "<td class=\"number\">{}</td>", cell);
    }
    out += "</tr>\n";
  }
  out += html::kTableEnd;
  for (const RankGroup& group : ranks.groups) {
    if (group.count > 1) html::add_remark(out, escaped(group_text(group)) + ".");
  }
}

void add_recording(std::string& out, const html::PageContents& contents, std::size_t index) {
  const std::string id = fmt::format("r{}-", index);
  fmt::format_to(std::back_inserter(out), "<article id=\"r{}\">\n<h2>{}</h2>\n", index,
                 escaped(recording_title(contents.recording)));
  html::add_verdict(out, contents);
  add_facts(out, contents.recording);
  if (!contents.recording.chosen_blocks.empty()) {
    html::add_remark(out, "Lists, flame graphs and memory over time: only " +
                              escaped(contents.recording.chosen_blocks) + ". Totals, ledger and advice: all blocks.");
  }
  html::add_summary(out, contents, id);
  html::add_breakdown(out, contents, id);
  html::add_timeline(out, contents, id);
  html::add_ledger(out, contents, id);
  html::add_peak(out, contents, id);
  html::add_flame_graph(out, contents, id);
  html::add_segment_map(out, contents, id);
  html::add_findings(out, contents, id);
  html::add_tables(out, contents, id);
  out += "</article>\n";
}

// nullopt if it is known to exceed the maximum size of a report.
std::optional<std::string> page_of(const std::vector<html::PageContents>& pages, const RankComparison& ranks) {
  const bool several = pages.size() > 1;
  std::string out;
  add_head(out, pages);
  fmt::format_to(std::back_inserter(out), "<body>\n<header><h1>Memory report</h1></header>\n<main{}>\n",
                 several ? " class=\"several\"" : "");
  if (several) add_overview(out, ranks);
  for (std::size_t index = 0; index < pages.size(); ++index) {
    if (pages[index].is_detailed()) add_recording(out, pages[index], index);
    if (out.size() > kMaxHtmlBytes) return std::nullopt;
  }
  out += "</main>\n<footer>Made by Tidemark. This page is complete in itself and loads nothing.</footer>\n";
  fmt::format_to(std::back_inserter(out), "<script type=\"application/json\" id=\"tidemark-data\">{}</script>\n",
                 html::data_block(pages, several ? &ranks : nullptr));
  fmt::format_to(std::back_inserter(out), "<script>{}</script>\n</body>\n</html>\n", html::kPageScript);
  if (out.size() > kMaxHtmlBytes) return std::nullopt;
  return out;
}

}  // namespace

std::size_t html::least_bytes(html::PageContents contents) {
  while (html::halve(contents)) {
  }
  std::string out;
  if (contents.is_detailed()) add_recording(out, contents, 0);
  return out.size();
}

Error html::too_large_error(std::size_t count, std::size_t of) {
  return {fmt::format(
      "{} of {} recordings fill more than the {} that a report may have; name fewer files, show one rank beside the "
      "table of all with --rank N, or one device with --device",
      format_count(count), format_count(of), format_bytes(kMaxHtmlBytes))};
}

Result<std::string> to_html(std::vector<html::PageContents> contents) {
  std::vector<RankRow> rows;
  rows.reserve(contents.size());
  for (const html::PageContents& each : contents) rows.push_back(rank_row(rows.size(), each.summary));
  if (auto status = check_rank(rows); !status) return status.error();
  const RankComparison ranks = compare_ranks(std::move(rows));
  std::vector<html::PageContents> pages;  // in the order of the table
  pages.reserve(contents.size());
  for (const RankRow& row : ranks.rows) pages.push_back(std::move(contents[row.index]));
  for (;;) {
    std::optional<std::string> page = page_of(pages, ranks);
    if (page) return *std::move(page);
    bool shortened = false;
    for (html::PageContents& page_contents : pages) shortened |= html::halve(page_contents);
    if (shortened) continue;
    return html::too_large_error(pages.size(), pages.size());
  }
}

}  // namespace tidemark
