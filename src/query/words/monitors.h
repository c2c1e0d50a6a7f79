// Notes on how a machine was monitored, in words.
#pragma once

#include <string>
#include <vector>

#include "monitor/watch_reports.h"

namespace tidemark {

/// "GPU 0", "GPU 0 instance 1", "host": short, for lines and headings of columns.
[[nodiscard]] std::string short_title(const WatchedDevice& device);

/// A process in a list of a machine's processes: "python train.py", "rank 0 of 8: python train.py", "DataLoader worker
/// 2 of 4, parent 1234". Empty if its name is unknown. Printable. `short_form`: without the parent.
[[nodiscard]] std::string process_words(const WatchedProcess& process, bool short_form = false);

/// "3.1 GiB anonymous, 1.2 GiB page cache, 120.0 MiB shared memory"
[[nodiscard]] std::string host_parts_text(const MemoryParts& parts);
/// ", 64.0 MiB pinned for CUDA", to append to a text on the host's memory; empty if unknown.
[[nodiscard]] std::string and_cuda_pinned_text(std::optional<std::uint64_t> bytes);

/// A note if events of a recorded process are read late, or were skipped; otherwise empty. Not safe to print.
[[nodiscard]] std::string lag_text(const RecordedProcess& process);

/// Missing observations and their reasons, and deviations from the requested settings: sentences. Not safe to print.
[[nodiscard]] std::vector<std::string> watch_notes(const WatchRun& run);

/// The line that a terminal shows meanwhile: "12 s of 60 s; GPU 0 40.1 GiB of 79.6 GiB, peak 42.0 GiB". Printable.
[[nodiscard]] std::string watch_progress(const MachineState& state, std::optional<double> duration_seconds);

/// "10:02:11 GPU 0: high (was low): its peaks grow by …; the limit is reached in …". Printable, with the UTC time.
[[nodiscard]] std::string change_text(const RiskChange& change);

/// The reason why fragmentation is unknown for a device that is only seen from outside.
inline constexpr const char* kNoFragmentation =
    "how much of what a process has reserved is fragmented, only its allocator knows: record the program with "
    "`tidemark run`";
/// The reason why WatchRun::unused_share() has no value for this device: a clause.
[[nodiscard]] std::string no_fragmentation_text(const WatchRun& run, const WatchedDevice& device);
/// Why growth has no stacks.
inline constexpr const char* kNoTracking = "no process is being recorded: start the program with `tidemark run`";

/// Where to find objects that the program did not report.
inline constexpr const char* kWhereObjectsAre =
    "tidemark.largest_holders() inside the program shows who holds its memory (docs/holders.md)";

/// Why chains of references are missing: a sentence. Printable.
[[nodiscard]] std::string search_stopped_text(double seconds);

}  // namespace tidemark
