// A job's report, and its events, as bytes: from the coordinator to the programs that ask it, and from agents to the
// coordinator.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/job_report.h"

namespace tidemark {

inline constexpr std::size_t kMaxReportBytes = std::size_t{64} << 20;

/// protobuf; each struct is a message.
[[nodiscard]] std::string encode(const JobReport& report);

/// Hostile input: the error says what is wrong. Positions in the report are within its lists. Texts are as they came:
/// their readers remove control characters.
[[nodiscard]] Result<JobReport> decode_report(std::string_view bytes);

[[nodiscard]] std::string encode(const JobEvent& event);
/// Hostile input. Texts come out clean and bounded, as by clean_name().
[[nodiscard]] Result<JobEvent> decode_event(std::string_view bytes);

}  // namespace tidemark
