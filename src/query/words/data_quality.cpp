#include "query/words/data_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

constexpr QualityTemplate kTemplates[] = {
    {QualityId::ring_full, "{count} events were dropped: the ring was full", "1 event was dropped: the ring was full"},
    {QualityId::reentrant, "{count} events inside signal handlers were not recorded",
     "1 event inside a signal handler was not recorded"},
    {QualityId::thread_limit, "{count} events were not recorded: too many threads at once[ (limit: {limit})]",
     "1 event was not recorded: too many threads at once[ (limit: {limit})]"},
    {QualityId::disk, "the recording could not be written to the end[: {detail}]"},
    {QualityId::size_limit, "recording stopped: the file reached --max-size[ ({limit_bytes})]"},
    {QualityId::python_unsupported, "no Python stacks: this version of Python is not supported[ ({detail})]"},
    {QualityId::native_unsupported, "no native stacks[: {detail}]"},
    {QualityId::stack_truncated,
     "{count} stacks were truncated: their outermost frames are missing[ (limit: {limit} frames)]",
     "1 stack was truncated: its outermost frames are missing[ (limit: {limit} frames)]"},
    {QualityId::recorder_gone, "the recorder ended before the program: later events are missing"},
    {QualityId::unknown_frames, "{count} frames of the file were skipped: this version of tidemark does not know them",
     "1 frame of the file was skipped: this version of tidemark does not know it"},
    {QualityId::torn_tail, "the last {count} of the file were skipped: damaged or incomplete[ ({detail})]"},
    {QualityId::invalid_records, "{count} records from the program were dropped: invalid",
     "1 record from the program was dropped: invalid"},
    {QualityId::device_lost, "a GPU stopped responding: no samples of it after that[ ({detail})]"},
    {QualityId::driver_off, "memory of the CUDA driver was not recorded, or only in part[: {detail}]"},
    {QualityId::driver_frees, "{count} calls of the CUDA driver freed memory whose allocation was not recorded",
     "1 call of the CUDA driver freed memory whose allocation was not recorded"},
    {QualityId::invalid_definitions, "{count} definitions from the program were dropped: invalid",
     "1 definition from the program was dropped: invalid"},
    {QualityId::invalid_times,
     "{count} events had a time in the future; each has the time of its thread's previous event instead",
     "1 event had a time in the future; it has the time of its thread's previous event instead"},
    {QualityId::ring_corrupted, "the rings of {count} threads were overwritten: their later events are missing",
     "the ring of 1 thread was overwritten: its later events are missing"},
    {QualityId::unrecorded_processes, "{count} other processes of the run were not recorded",
     "1 other process of the run was not recorded"},
    {QualityId::recorder_stopped,
     "{count} events were dropped while the recorder did not run (stopped or without a processor)",
     "1 event was dropped while the recorder did not run (stopped or without a processor)"},
    {QualityId::started_inside,
     "recording began inside the program when PyTorch was loaded already: memory allocated before is not recorded"},
    {QualityId::audit_hooks,
     "the program has audit hooks (sys.addaudithook), so no Python code of Tidemark runs in it: the names of its "
     "modules, parameters "
     "and optimizer states are unknown from then on"},
    {QualityId::barred_threads,
     "{count} events of threads were not recorded: a limit of memory (ulimit -v) or a seccomp filter of the program "
     "kept "
     "recording out of them",
     "1 event of a thread was not recorded: a limit of memory (ulimit -v) or a seccomp filter of the program kept "
     "recording "
     "out of it"},

    {QualityId::unknown_loss, "{count} losses of a kind that this version of tidemark does not know[ ({detail})]",
     "1 loss of a kind that this version of tidemark does not know[ ({detail})]"},
    {QualityId::unknown_definitions, "{count} definitions were skipped: this version of tidemark does not know them",
     "1 definition was skipped: this version of tidemark does not know it"},
    {QualityId::unknown_samples, "{count} samples were skipped: this version of tidemark does not know them",
     "1 sample was skipped: this version of tidemark does not know it"},
    {QualityId::too_many_devices, "{count} events were skipped: too many devices[ (limit: {limit})]",
     "1 event was skipped: too many devices[ (limit: {limit})]"},
    {QualityId::recorder_killed,
     "the recording has no end (its recorder was killed, is still running, or could not write any more): events after "
     "the last recorded one are missing"},
    {QualityId::in_progress, "recording is in progress: events after the last one so far are not included"},
    {QualityId::stopped_early, "recording was stopped before the program ended"},
    {QualityId::paused,
     "the program paused recording {count} times, {duration_ns} in total: allocations and frees in between are not "
     "recorded",
     "the program paused recording once, for {duration_ns}: allocations and frees in between are not recorded"},
    {QualityId::window,
     "the last part of a longer recording, which began {began_ns} before: what was allocated and freed in that time is "
     "not recorded, nor are its peaks"},
    {QualityId::unmatched_frees, "{count} frees on {device} were of blocks whose allocation was not recorded",
     "1 free on {device} was of a block whose allocation was not recorded"},
    {QualityId::baseline, "{count} on {device} were allocated before the first recorded event"},
    {QualityId::missing_symbols, "{count} native frames of {file} have no function name: the file {reason}",
     "1 native frame of {file} has no function name: the file {reason}"},

    {QualityId::trace_start_lost,
     "{bytes} (blocks: {blocks}, segments: {count}[; the file has {entries} entries of the history]) were allocated "
     "before the history was switched on[, {recorded} of the blocks later, but before its oldest entry (max_entries)]"},
    {QualityId::uncertain_sizes, "the sizes of {count} blocks from before the trace are uncertain, by at most {bytes}",
     "the size of 1 block from before the trace is uncertain, by at most {bytes}"},
    {QualityId::guessed_sizes,
     "expandable_segments changed and the file does not say when: the sizes of {count} blocks are the likelier of two, "
     "which differ by {bytes} in total",
     "expandable_segments changed and the file does not say when: the size of 1 block is the likelier of two, which "
     "differ by {bytes}"},
    {QualityId::sizes_corrected,
     "the sizes of {count} blocks follow from later entries, not from the allocator's rules",
     "the size of 1 block follows from later entries, not from the allocator's rules"},
    {QualityId::unknown_times, "{count} trace entries have no time; each has the time of the entry before it instead",
     "1 trace entry has no time; it has the time of the entry before it instead"},
    {QualityId::clock_steps_back, "the clock steps back {count} times, by at most {duration_ns}",
     "the clock steps back once, by {duration_ns}"},
    {QualityId::no_settings,
     "the file does not contain the allocator's settings: sizes are exact if max_split_size_mb was not set, and "
     "roundup_power2_divisions was not set or is the same for all sizes"},
    {QualityId::no_segments, "the file contains no segments to check the trace against"},
    {QualityId::unknown_frees, "{count} frees are at addresses where no block was in use",
     "1 free is at an address where no block was in use"},
    {QualityId::double_frees, "{count} blocks were freed twice", "1 block was freed twice"},
    {QualityId::implied_requests, "{count} frees were completed without a request",
     "1 free was completed without a request"},
    {QualityId::implied_completions, "{count} frees were never completed, but their memory was used again",
     "1 free was never completed, but its memory was used again"},
    {QualityId::overlapping_blocks,
     "{count} allocations overlap blocks that were still in use; those blocks count as freed",
     "1 allocation overlaps a block that was still in use; that block counts as freed"},
    {QualityId::unexplained_gaps, "{count} allocations do not begin where a free block begins",
     "1 allocation does not begin where a free block begins"},
    {QualityId::truncated_blocks, "{count} blocks are larger than the free memory at their address",
     "1 block is larger than the free memory at its address"},
    {QualityId::missing_segments, "{count} allocations are outside every segment; reserved bytes are too low",
     "1 allocation is outside every segment; reserved bytes are too low"},
    {QualityId::overlapping_segments,
     "{count} segments were reserved over segments that still existed; those count as released",
     "1 segment was reserved over a segment that still existed; that one counts as released"},
    {QualityId::unknown_segments, "{count} segments were released that did not exist",
     "1 segment was released that did not exist"},
    {QualityId::segments_in_use, "{count} segments were released while blocks in them were in use",
     "1 segment was released while blocks in it were in use"},
    {QualityId::impossible_ranges, "{count} trace entries were skipped: unknown or impossible address or size",
     "1 trace entry was skipped: unknown or impossible address or size"},
    {QualityId::free_size_mismatches, "{count} frees have a different size than the allocation",
     "1 free has a different size than the allocation"},
    {QualityId::snapshot_mismatches, "{count} snapshot entries have different active bytes than the replay",
     "1 snapshot entry has different active bytes than the replay"},
    {QualityId::final_blocks_missing, "{count} blocks of the final state are missing after the replay",
     "1 block of the final state is missing after the replay"},
    {QualityId::final_blocks_extra, "{count} blocks are in use after the replay, but not in the final state",
     "1 block is in use after the replay, but not in the final state"},
    {QualityId::final_blocks_different, "{count} blocks differ from the final state in size or state",
     "1 block differs from the final state in size or state"},
    {QualityId::final_segments_missing, "{count} segments of the final state are missing after the replay",
     "1 segment of the final state is missing after the replay"},
    {QualityId::final_segments_extra, "{count} segments are reserved after the replay, but not in the final state",
     "1 segment is reserved after the replay, but not in the final state"},
    {QualityId::impossible_device, "device {number} was skipped: no such device number"},
    {QualityId::exported_recording,
     "exported from a recording by `tidemark export`: blocks are as recorded; streams, requested sizes and, on GPUs, "
     "reserved bytes are only in the recording"},
    {QualityId::invalid_fields,
     "{count} fields have values of the wrong type or out of range, first (with their number) at {names}",
     "1 field has a value of the wrong type or out of range: {names}"},
    {QualityId::unknown_actions,
     "{count} trace entries have an action that this version of tidemark does not know: {names}",
     "1 trace entry has an action that this version of tidemark does not know: {names}"},
    {QualityId::unknown_keys, "{count} fields are unknown to this version of tidemark: {names}",
     "1 field is unknown to this version of tidemark: {names}"},
};
static_assert(covers_every_quality_id(kTemplates));
static_assert(std::all_of(std::begin(kTemplates), std::end(kTemplates),
                          [](const QualityTemplate& entry) { return !entry.text.empty(); }));

/// Values that stages below hand on as a code. Others are names, versions or errors, and stand as they are.
struct CodeText {
  QualityId id;
  std::string_view code;
  std::string_view text;
};
constexpr CodeText kCodes[] = {
    {QualityId::driver_off, "cupti_not_found", "libcupti.so was not found; install nvidia-cuda-cupti"},
    {QualityId::driver_off, "cupti_in_use", "another tool uses CUPTI; run without that tool"},
    {QualityId::driver_off, "cupti_taken", "another tool took over CUPTI during the run"},
    {QualityId::driver_off, "array_format",
     "the size of CUDA arrays of block-compressed, YUV or new formats is not known"},
    {QualityId::driver_off, "driver_too_old", "this CUDA driver is older than 11.4"},
    {QualityId::missing_symbols, "no_symbol",
     "has no symbol at these addresses (stripped files name exported functions only)"},
};

std::string names_text(const QualityNames& names) {
  constexpr std::size_t kMaxListed = 8;
  std::string text;
  std::size_t listed = 0;
  for (const auto& [name, count] : names) {
    if (listed++ == kMaxListed) return text + fmt::format(" and {} more", names.size() - kMaxListed);
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", shown(name), format_count(count));
  }
  return text;
}

struct ValueText {
  QualityId id;
  std::string operator()(std::uint64_t number) const { return format_count(number); }
  std::string operator()(const QualityBytes& value) const { return format_bytes(value.bytes); }
  std::string operator()(const QualityDuration& value) const { return format_duration_ns(value.ns); }
  std::string operator()(const QualityNames& names) const { return names_text(names); }
  std::string operator()(const std::string& text) const {
    for (const CodeText& entry : kCodes) {
      if (entry.id == id && entry.code == text) return std::string(entry.text);
    }
    return text;
  }
};

std::optional<std::string> value_text(const QualityIssue& issue, std::string_view name) {
  if (name == "count") {
    if (!issue.count) return std::nullopt;
    const bool bytes = facts_of(issue.id).unit == QualityUnit::bytes;
    return bytes ? format_bytes(*issue.count) : format_count(*issue.count);
  }
  for (const QualityParam& param : issue.params) {
    if (param.name == name) return std::visit(ValueText{issue.id}, param.value);
  }
  return std::nullopt;
}

/// A text without brackets, with its values filled in; sets `complete` to false if one is unknown.
std::string filled(std::string_view text, const QualityIssue& issue, bool& complete) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    const auto value = value_text(issue, text.substr(open + 1, close - open - 1));
    if (!value) complete = false;
    out += value.value_or("n/a");
    text.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace

const QualityTemplate& quality_template(QualityId id) {
  return kTemplates[static_cast<std::size_t>(id)];
}

bool is_still_recorded(const DataQuality& quality) {
  return !quality.complete && std::none_of(quality.issues.begin(), quality.issues.end(), [](const QualityIssue& issue) {
    return facts_of(issue.id).incomplete && issue.id != QualityId::in_progress;
  });
}

const char* quality_verdict(const DataQuality& quality) {
  if (is_still_recorded(quality)) return "still recording";
  if (!quality.complete) return "events are missing";
  const bool paused = std::any_of(quality.issues.begin(), quality.issues.end(),
                                  [](const QualityIssue& issue) { return issue.id == QualityId::paused; });
  return paused ? "complete except while paused" : "complete";
}

std::string quality_text(const QualityIssue& issue) {
  const QualityTemplate& entry = quality_template(issue.id);
  std::string_view text = issue.count == 1 && !entry.text_for_one.empty() ? entry.text_for_one : entry.text;
  std::string out;
  if (text.find("{device}") == std::string_view::npos) {
    if (const auto device = value_text(issue, "device")) out = *device + ": ";
  }
  while (!text.empty()) {
    bool complete = true;
    const std::size_t open = text.find('[');
    out += filled(text.substr(0, open), issue, complete);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find(']', open);
    complete = true;
    const std::string part = filled(text.substr(open + 1, close - open - 1), issue, complete);
    if (complete) out += part;
    text.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace tidemark
