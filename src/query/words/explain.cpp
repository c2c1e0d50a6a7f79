#include "query/words/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/arithmetic.h"
#include "base/units.h"
#include "query/words/advice.h"
#include "query/words/printable.h"
#include "query/words/rates.h"
#include "query/words/recording_text.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

// Why the request could not use the cached memory: "... cached, but ...".
std::string unusable_cache_text(const OomFailure& failure) {
  if (!failure.cache) return "its free blocks are too small or unusable for this request";
  const OomCache& cache = *failure.cache;
  if (2 * cache.whole_in_default_pool > *failure.cached) {
    return "PyTorch releases no cached memory during CUDA graph capture";
  }
  const std::uint64_t most =
      std::max({cache.usable.bytes, cache.other_streams.bytes, cache.other_pools.bytes, cache.other_kinds.bytes});
  if (most == cache.usable.bytes) {
    return fmt::format("the largest free block usable for this request is {}", format_bytes(cache.usable.largest));
  }
  const std::string part = most == *failure.cached ? "it" : fmt::format("{} of it", format_bytes(most));
  const char* where = most == cache.other_streams.bytes ? "segments of other streams"
                      : most == cache.other_pools.bytes ? "other memory pools"
                                                        : "segments for blocks of other sizes";
  return fmt::format("{} is in {}, which this request cannot use", part, where);
}

std::string requested_text(const OomFailure& failure) {
  return format_bytes(failure.request.bytes);
}

std::string blocks_text(const OomFix& fix) {
  if (fix.of_blocks == 1) return "the only block";
  if (fix.blocks == fix.of_blocks) return fmt::format("all {} blocks", format_count(fix.blocks));
  return fix.blocks == 1
             ? fmt::format("the newest of {} blocks", format_count(fix.of_blocks))
             : fmt::format("the newest {} of {} blocks", format_count(fix.blocks), format_count(fix.of_blocks));
}

std::string outside_text(const OomFailure& failure, std::uint64_t bytes) {
  if (failure.other_processes == bytes) {
    return fmt::format("other processes use {} of the device", format_bytes(bytes));
  }
  return failure.outside && *failure.outside == bytes
             ? fmt::format("{} of the device are used outside PyTorch", format_bytes(bytes))
             : fmt::format("memory used outside PyTorch grew by at least {}", format_bytes(bytes));
}

// Less was free than required, by less than the sample of it may be off.
bool is_probably_full(const OomFailure& failure) {
  return failure.refused_by == OomRefusedBy::unknown && failure.device_free && failure.sampled_at_ns &&
         *failure.device_free < failure.request.driver;
}

// "~3.2 GiB in autograd graphs that no backward pass uses": memory without which the request would have been met.
std::string kept_by_mistake_text(const OomFailure& failure) {
  for (const OomAdvice& advice : failure.advice) {
    if (advice.suffices != true) continue;
    switch (advice.kind) {
      case AdviceKind::inference_with_autograd:
        return saving_text(advice) + " in autograd graphs that no backward pass uses";
      case AdviceKind::retained_graph:
        return saving_text(advice) + " in autograd graphs of earlier steps";
      case AdviceKind::failed_call:
        return saving_text(advice) + " kept alive by the exception of a failed call";
      default:
        break;
    }
  }
  return {};
}

// "12.0 MiB leaked in previous steps".
std::string main_cause_text(const OomFailure& failure) {
  if (!failure.cause && !failure.findings.empty() && failure.findings.front().cause == OomCause::leak) {
    return fmt::format("{} may have leaked", format_bytes(failure.findings.front().bytes));
  }
  if (!failure.cause) return is_probably_full(failure) ? "the device was probably full" : "cause unknown";
  const std::string bytes = format_bytes(failure.findings.front().bytes);
  switch (*failure.cause) {
    case OomCause::leak:
      return fmt::format("{} leaked in previous steps", bytes);
    case OomCause::other_process:
      return outside_text(failure, failure.findings.front().bytes);
    case OomCause::limit:
      return "the process's memory limit was reached";
    case OomCause::fragmentation:
      return fmt::format("{} cached, but {}", bytes, unusable_cache_text(failure));
    case OomCause::demand:
      break;
  }
  if (const std::string kept = kept_by_mistake_text(failure); !kept.empty()) return kept;
  if (failure.findings.front().bytes == 0) {
    return fmt::format("{} allocated before the end of the first training step", format_bytes(failure.allocated));
  }
  return fmt::format("{} allocated, {} more than available", format_bytes(failure.allocated), bytes);
}

/// The fastest leak of a failure, and the object that contains it.
struct FastestLeak {
  const LeakSite* site = nullptr;
  const LeakObject* object = nullptr;  ///< may be null
  bool is_graph = false;
  std::size_t others = 0;  ///< leaks that are not of this graph, or not this one

  [[nodiscard]] std::string place() const {
    const std::string more = others == 0 ? "" : fmt::format(" and {} more", format_count(others));
    return stack_text(is_graph ? object->last : site->stack, kStackInSentence) + more;
  }
};

FastestLeak fastest_leak(const OomFailure& failure) {
  FastestLeak fastest;
  fastest.site = &failure.leaks.front();
  const std::size_t object = fastest.site->object;
  if (object < failure.leak_objects.size()) fastest.object = &failure.leak_objects[object];
  fastest.is_graph = fastest.object != nullptr && fastest.object->kind == LeakObjectKind::autograd_graph;
  const std::size_t sites = fastest.is_graph ? fastest.object->leaks : 1;
  fastest.others = failure.leaks.size() - std::min<std::size_t>(sites, failure.leaks.size());
  return fastest;
}

std::string leaking_text(const OomFailure& failure) {
  const FastestLeak leak = fastest_leak(failure);
  return (leak.is_graph ? "autograd graphs are retained, likely by the tensors that they end in: "
                        : "leaking call site: ") +
         leak.place();
}

std::string stop_leak_text(const OomFailure& failure) {
  const FastestLeak leak = fastest_leak(failure);
  const bool known = leak.object != nullptr && leak.object->mistake.mistake != UsualMistake::none;
  const std::string_view fix = known ? usual_mistake_words(leak.object->mistake.mistake, leak.object->device).fix
                                     : "remove the references to what it allocates";
  return fmt::format("stop the leak of {}: {}", leak.place(), fix);
}

}  // namespace

std::string verdict_text(const OomFailure& failure) {
  std::string free = failure.device_free ? format_bytes(*failure.device_free) + " free"
                     : failure.caching   ? "free device memory unknown"
                                         : format_bytes(failure.allocated) + " allocated";
  if (failure.device_free && failure.capacity) free += " of " + format_bytes(*failure.capacity);
  return fmt::format("Out of memory on {}: {} requested, {}; {}", to_string(failure.device), requested_text(failure),
                     free, main_cause_text(failure));
}

std::string out_of_memory_headline(const OomFailure& failure, const RecordingInfo& recording) {
  return fmt::format("{}. More: `tidemark explain {}`", verdict_text(failure), printable(recording.path));
}

std::string evidence_text(const OomFailure& failure, const OomFinding& finding) {
  const std::string missing = failure.missing ? format_bytes(*failure.missing) : format_bytes(failure.request.driver);
  switch (finding.cause) {
    case OomCause::leak: {
      const std::string condition =
          finding.certain
              ? ""
              : fmt::format(" (if the pattern repeated {} times is a training step)", format_count(failure.step_count));
      return fmt::format("{} leaked{}{}; {}", format_bytes(finding.bytes), condition,
                         failure.caching ? fmt::format(", {} missing", missing) : "", leaking_text(failure));
    }
    case OomCause::other_process:
      return fmt::format("{}; {} missing", outside_text(failure, finding.bytes), missing);
    case OomCause::limit:
      return fmt::format("{} free on the device, {} required", format_bytes(finding.bytes),
                         format_bytes(failure.request.driver));
    case OomCause::fragmentation: {
      const bool with_free = failure.refused_by == OomRefusedBy::device && finding.bytes < failure.request.bytes;
      return fmt::format("{} cached{}, enough if {} one usable block; {}", format_bytes(finding.bytes),
                         with_free ? " and " + bytes_text(failure.device_free) + " free" : "",
                         with_free ? "they were" : "it were", unusable_cache_text(failure));
    }
    case OomCause::demand:
      break;
  }
  if (finding.bytes == 0) {
    return fmt::format("the first training step was not complete: {} cached and {} free are little for the rest of it",
                       bytes_text(failure.cached), bytes_text(failure.device_free));
  }
  return fmt::format("{} missing even if all cached ({}) and free ({}) memory were contiguous",
                     format_bytes(finding.bytes), bytes_text(failure.cached), bytes_text(failure.device_free));
}

std::string device_free_source(const OomFailure& failure) {
  if (!failure.sampled_at_ns) return "as reported by the driver";
  const bool before = *failure.sampled_at_ns <= failure.last_ns;
  const std::uint64_t distance =
      before ? failure.last_ns - *failure.sampled_at_ns : *failure.sampled_at_ns - failure.last_ns;
  return fmt::format("sampled {} {}", format_duration_ns(distance), before ? "before" : "after");
}

std::string unknown_cause_text(const OomFailure& failure) {
  if (!failure.caching) return "the allocator of this device does not report available memory";
  if (failure.fitting_block) {
    return "a sufficient free block was cached; the request probably belongs to a private pool that the file does not "
           "record";
  }
  if (!failure.device_free) {
    return fmt::format(
        "free device memory is unknown: the device was full or a memory limit was reached; {} cached "
        "did not suffice",
        bytes_text(failure.cached));
  }
  return fmt::format("the device had {} free ({}) and {} were required; {}", bytes_text(failure.device_free),
                     device_free_source(failure), format_bytes(failure.request.driver),
                     is_probably_full(failure)
                         ? "the device was probably full, but the sample is not of the same moment"
                     : failure.sampled_at_ns ? "the sample is too old to tell whether the device was full"
                                             : "the driver may reserve some for itself");
}

std::string fix_text(const OomFailure& failure, const OomFix& fix) {
  switch (fix.kind) {
    case OomFixKind::free_blocks:
      return fmt::format("free {} of {}", blocks_text(fix), stack_text(fix.stack, kStackInSentence));
    case OomFixKind::stop_leak:
      return stop_leak_text(failure);
    case OomFixKind::free_device:
      return failure.other_processes ? "end other processes on the device, or let them use less memory"
                                     : "free memory used outside PyTorch on the device";
    case OomFixKind::raise_limit:
      return fmt::format("raise the memory limit to {} or more (upper bound)", format_bytes(failure.limit->below));
    case OomFixKind::empty_private_pool:
      return "release unused segments of private pools (CUDA graphs, torch.cuda.MemPool)";
    case OomFixKind::empty_cache_before:
      return "release cached memory before the CUDA graph capture: memory freed during capture stays in the default "
             "pool";
    case OomFixKind::same_stream:
      return "use the free block of another stream: allocate on that stream, or release the block earlier";
    case OomFixKind::smaller_request:
      return fmt::format("make the request {} smaller (gradient accumulation, shorter sequences)",
                         share_text(share_of(fix.bytes, failure.request.bytes)));
    case OomFixKind::settings:
      return fmt::format("set PYTORCH_CUDA_ALLOC_CONF={}: the request succeeds when it is replayed with this setting",
                         printable(fix.settings));
    case OomFixKind::expandable:
      break;
  }
  return "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (probably enough)";
}

const char* fits_text(const OomAdvice& advice) {
  if (!advice.suffices) return "unknown";
  return *advice.suffices ? "yes" : "no";
}

std::string check_text(const Explanation& explanation, const OomFailure& failure, const OomFix& fix) {
  const std::string file = printable(base_name(explanation.recording.path));
  switch (fix.kind) {
    case OomFixKind::free_blocks:
      return fmt::format(
          "`tidemark table {} --at {}ns` lists the live blocks; after the change: `tidemark compare OLD NEW`", file,
          failure.last_ns);
    case OomFixKind::stop_leak:
      return fmt::format("`tidemark leaks {}` reports no leak after the change", file);
    case OomFixKind::free_device:
      return "`nvidia-smi` lists the processes of the device";
    case OomFixKind::raise_limit:
      return "PyTorch's error message states the limit; torch.cuda.set_per_process_memory_fraction sets it";
    case OomFixKind::empty_private_pool:
      return fmt::format("`tidemark table {0} --by pool`; `tidemark fragmentation {0}` shows segments without blocks",
                         file);
    case OomFixKind::empty_cache_before:
      return "call torch.cuda.empty_cache() after the last free before the capture, then record again";
    case OomFixKind::same_stream:
      return fmt::format("`tidemark table {} --by stream`", file);
    case OomFixKind::smaller_request:
      return "record again with the smaller request; other allocations may change with it";
    case OomFixKind::settings:
      return fmt::format("replayed by {}; `tidemark simulate {} --search` shows all settings",
                         printable(explanation.simulated_by), file);
    case OomFixKind::expandable:
      break;
  }
  return "record again with this setting; `tidemark fragmentation NEW` shows the remaining free blocks";
}

}  // namespace tidemark
