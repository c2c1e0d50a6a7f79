// A job and its ranks in words. Printable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/job_report.h"

namespace tidemark {

/// "1 rank", "8 ranks".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view one);
/// "rank 3", "process 4711" of a process without a rank.
[[nodiscard]] std::string rank_title(const JobRank& rank);
/// "GPU 1", "the host".
[[nodiscard]] std::string device_title(const JobDevice& device);
/// "rank 3 (node b, GPU 1)".
[[nodiscard]] std::string rank_place(const JobReport& report, std::size_t rank);

/// "12 s ago"; "now" below two seconds.
[[nodiscard]] std::string heard_text(double age_seconds);

/// The job's risk, and the memory that decides it: a sentence.
[[nodiscard]] std::string job_verdict(const JobReport& report);

/// "+1.9 GiB activation", "+0.8 GiB outside PyTorch's allocator (CUDA context, NCCL, libraries)".
[[nodiscard]] std::string part_text(const PartDifference& part);
/// "21.9 GiB used, 1.9 GiB above the median of its 3 peers".
[[nodiscard]] std::string outlier_text(const RankOutlier& outlier);

/// "rank 3 (node b): out of memory on GPU 1: 64.0 MiB requested".
[[nodiscard]] std::string event_text(const JobEvent& event);

/// Nodes whose state is old, and what else is missing or wrong: sentences without a full stop.
[[nodiscard]] std::vector<std::string> job_notes(const JobReport& report);

/// "10:02:11 node b joined". `report` is of the time of the change.
[[nodiscard]] std::string change_text(const JobChange& change, const JobReport& report);

/// The line that a terminal shows meanwhile: "12 s of 60 s; 8 ranks on 2 nodes; risk low".
[[nodiscard]] std::string job_progress(const JobReport& report, std::optional<double> duration_seconds);

}  // namespace tidemark
