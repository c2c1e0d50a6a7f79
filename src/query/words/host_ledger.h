// The breakdown of the host's memory in words, and processes killed for lack of memory; for text, HTML and charts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/ledger/ledger.h"
#include "query/words/ledger.h"

namespace tidemark {

/// "main process python train.py", "DataLoader worker 0 of 4". Printable.
[[nodiscard]] std::string role_words(const HostProcess& process);
/// "main process python train.py (pid 12)", "DataLoader worker 0 of 4 (pid 17)". Printable.
[[nodiscard]] std::string process_words(const HostProcess& process);
/// Printable.
[[nodiscard]] std::string line_words(const HostLine& line, const HostBreakdown& ledger);
/// "host  control group  3.9 GiB used of 4.0 GiB at 3.210 s".
[[nodiscard]] std::string host_title(const HostBreakdown& ledger);
/// The lines that add up; `unexplained` comes last. Printable.
[[nodiscard]] std::vector<LedgerRow> host_rows(const HostBreakdown& ledger);
/// Memory outside the sum, or in several lines of it. Printable, may be empty.
[[nodiscard]] std::vector<std::string> host_remarks(const HostBreakdown& ledger);
/// A sentence for people, without its full stop.
[[nodiscard]] std::string_view caveat_words(HostCaveat caveat);

/// The processes of the job: headings, then a row for each. Empty if there is only one process. Printable.
struct HostTable {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;
};
[[nodiscard]] HostTable host_table(const HostBreakdown& ledger);

/// One sentence: killed process, time, and which memory was exhausted.
[[nodiscard]] std::string kill_headline(const HostKill& kill);
/// Memory of the killed process, its source, and the largest processes at that time: a line each, printable.
[[nodiscard]] std::vector<std::string> kill_details(const HostKill& kill);
// The parts of both, also printable.
/// "killed by the kernel's OOM killer at 3.210 s, its control group had reached its limit of 4.0 GiB". `at`: "at 3.210
/// s", or empty.
[[nodiscard]] std::string killed_words(const KilledProcess& killed, const std::string& at);
[[nodiscard]] std::string held_words(const ProcessPages& pages);
[[nodiscard]] std::string_view evidence_words(KillEvidence evidence);
/// Empty if nothing is known.
[[nodiscard]] std::string most_memory_words(const HostBreakdown& before);

}  // namespace tidemark
