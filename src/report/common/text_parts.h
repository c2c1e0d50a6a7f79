// Parts shared by the text reports.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyze/advice/advice.h"
#include "analyze/common/recording_info.h"
#include "analyze/ledger/host_ledger.h"
#include "analyze/oom/explain.h"
#include "analyze/timeline/host_timeline.h"
#include "query/words/recording_text.h"
#include "report/common/columns.h"
#include "report/common/terminal.h"

namespace tidemark {

/// "  label           value\n": the labels of a list of facts are as wide as one another.
[[nodiscard]] std::string fact(const char* label, const std::string& value);
/// "414.7 MiB at 11.019 s, 390.2 MiB at end".
[[nodiscard]] std::string peak_and_end(const SampledBytes& bytes);
/// Size of requests for page-locked memory.
inline constexpr char kPinnedRequest[] = "unknown: PyTorch rounds each up to a power of two";
/// The same in a line that the terminal has room for.
[[nodiscard]] std::string fact(const char* label, const std::string& value, const Terminal& terminal);
[[nodiscard]] std::string fact(const char* label, const FittedText& value, const Terminal& terminal);

/// "53.6%"; on a wide terminal with colours, after a bar of that length: "████▎     53.6%".
[[nodiscard]] std::string share_cell(double share, const Terminal& terminal);

/// "Data quality: complete", or its issues, one per line.
[[nodiscard]] std::string quality_text(const DataQuality& quality, const Terminal& terminal);

/// The same for a first screen: only problems, in few lines; empty if the recording is complete.
[[nodiscard]] std::string short_quality_text(const DataQuality& quality, const Terminal& terminal);

/// One line for reports other than the summary: a note that the recording is incomplete; empty if it is complete.
[[nodiscard]] std::string quality_hint(const RecordingInfo& recording, const Terminal& terminal);

/// A table of changes and their savings at the peak, at most `most` rows (0 = all); empty without any.
[[nodiscard]] std::string advice_text(const std::vector<Advice>& list, std::size_t most, const Terminal& terminal);
/// A table of changes, and whether each would have been enough for the request that failed.
[[nodiscard]] std::string advice_text(const std::vector<OomAdvice>& list, const Terminal& terminal);

/// Processes killed for lack of host memory, with the reason; empty without any.
[[nodiscard]] std::string kills_text(std::span<const HostKill> kills, const Terminal& terminal);

/// "Next: tidemark explain run.tide  # PURPOSE": the last line of a report, to be pasted. `arguments`: "explain", or
/// "summary --all"; the recording's path follows.
[[nodiscard]] std::string next_text(const RecordingInfo& recording, const std::string& command,
                                    const std::string& purpose, const Terminal& terminal);

/// The same of a whole command: "Next: COMMAND  # PURPOSE".
[[nodiscard]] std::string next_command(const std::string& command, const std::string& purpose,
                                       const Terminal& terminal);

/// The texts of devices one below the other: one-line texts without a blank line between them.
[[nodiscard]] std::string join_devices(const std::vector<std::string>& texts);
template <typename Device, typename Text>
[[nodiscard]] std::string join_devices(const std::vector<Device>& devices, const Text& text_of) {
  std::vector<std::string> texts;
  texts.reserve(devices.size());
  for (const Device& device : devices) texts.push_back(text_of(device));
  return join_devices(texts);
}

/// "peak RSS: 774.2 MiB at 3.210 s, 700.1 MiB at end", and so on; empty without samples.
[[nodiscard]] std::vector<Fact> host_facts(const HostUsage& host);

/// Whether so much reserved memory was never allocated that it is worth a command: a quarter of it, and 256 MiB.
[[nodiscard]] constexpr bool is_largely_unused(std::uint64_t reserved_bytes, std::uint64_t allocated_bytes) {
  constexpr std::uint64_t kWorthIt = std::uint64_t{256} << 20;
  const std::uint64_t unused = reserved_bytes - (reserved_bytes < allocated_bytes ? reserved_bytes : allocated_bytes);
  return unused >= kWorthIt && unused >= reserved_bytes / 4;
}

}  // namespace tidemark
