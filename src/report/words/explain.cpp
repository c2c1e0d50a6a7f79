#include "report/words/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "report/words/frame_text.h"
#include "report/words/printable.h"
#include "report/words/recording.h"

namespace tidemark {
namespace {

std::string share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "n/a" : share_text(static_cast<double>(part) / static_cast<double>(whole));
}

// Why cached memory was of no use to the request: "… were cached, but …".
std::string out_of_reach_words(const OomFailure& failure) {
  if (!failure.cache) return "in pieces too small, or where this request could not use them";
  const OomCache& cache = *failure.cache;
  if (2 * cache.whole_in_default_pool > *failure.cached) {
    return "PyTorch gives nothing back while a CUDA graph is captured";
  }
  const std::uint64_t most =
      std::max({cache.usable.bytes, cache.other_streams.bytes, cache.other_pools.bytes, cache.other_kinds.bytes});
  const std::string part = most == *failure.cached ? "" : fmt::format("{} of them ", format_bytes(most));
  if (most == cache.usable.bytes)
    return fmt::format("{}in pieces of at most {}", part, format_bytes(cache.usable.largest));
  const char* where = most == cache.other_streams.bytes ? "segments of other streams"
                      : most == cache.other_pools.bytes ? "other memory pools"
                                                        : "segments for blocks of another kind";
  return fmt::format("{}in {}, which this request cannot use", part, where);
}

std::string asked(const OomFailure& failure) {
  return format_bytes(failure.request.bytes);
}

std::string blocks_words(const OomChange& change) {
  if (change.of_blocks == 1) return "its only block";
  if (change.blocks == change.of_blocks) return fmt::format("all its {} blocks", format_count(change.blocks));
  return change.blocks == 1 ? fmt::format("the newest of its {} blocks", format_count(change.of_blocks))
                            : fmt::format("the newest {} of its {} blocks", format_count(change.blocks),
                                          format_count(change.of_blocks));
}

std::string outside_words(const OomFailure& failure, std::uint64_t bytes) {
  return failure.outside && *failure.outside == bytes
             ? fmt::format("{} of the device were in use outside PyTorch", format_bytes(bytes))
             : fmt::format("at least {} that PyTorch had before were now in use by others", format_bytes(bytes));
}

}  // namespace

const char* name_of(OomCause cause) {
  constexpr std::array kNames = {"leak", "other_process", "limit", "fragmentation", "demand"};
  return kNames[static_cast<std::size_t>(cause)];
}

const char* name_of(OomRemedy remedy) {
  constexpr std::array kNames = {"free_blocks", "stop_leak",          "free_device",
                                 "raise_limit", "empty_private_pool", "empty_cache_before",
                                 "same_stream", "smaller_request",    "expandable_segments"};
  return kNames[static_cast<std::size_t>(remedy)];
}

std::string verdict_words(const OomFailure& failure) {
  const std::string device = to_string(failure.device);
  if (!failure.cause) {
    return fmt::format("{} ran out of memory when {} were asked for; the file does not tell why", device,
                       asked(failure));
  }
  const std::uint64_t bytes = failure.findings.front().bytes;
  switch (*failure.cause) {
    case OomCause::leak:
      return fmt::format(
          "{} ran out of memory because of a leak: {} had piled up, step by step, when {} were asked for", device,
          format_bytes(bytes), asked(failure));
    case OomCause::other_process:
      return fmt::format("{} ran out of memory when {} were asked for: {}", device, asked(failure),
                         outside_words(failure, bytes));
    case OomCause::limit:
      return fmt::format(
          "A memory limit on this process, not {}, was in the way when {} were asked for: the device had {} free",
          device, asked(failure), format_bytes(bytes));
    case OomCause::fragmentation:
      return fmt::format("{} ran out of memory through fragmentation: {} were asked for and {} were cached, but {}",
                         device, asked(failure), format_bytes(bytes), out_of_reach_words(failure));
    case OomCause::demand:
      break;
  }
  return fmt::format("{} is too small for this: {} were asked for on top of {}, {} more than there is", device,
                     asked(failure), format_bytes(failure.allocated), format_bytes(bytes));
}

std::string evidence_words(const OomFailure& failure, const OomFinding& finding) {
  const std::string missing = failure.missing ? format_bytes(*failure.missing) : format_bytes(failure.request.driver);
  switch (finding.cause) {
    case OomCause::leak: {
      const LeakPlace& first = failure.leaks.front();
      const std::string more =
          failure.leaks.size() == 1 ? "" : fmt::format(" and {} more", format_count(failure.leaks.size() - 1));
      const std::string doubt = finding.certain ? ""
                                                : fmt::format(", if what repeats {} times is a training step",
                                                              format_count(failure.step_count));
      return fmt::format("{} leaked by then{}; {} were missing: {}{}", format_bytes(finding.bytes), doubt, missing,
                         stack_text(first.stack), more);
    }
    case OomCause::other_process:
      return fmt::format("{}; {} were missing", outside_words(failure, finding.bytes), missing);
    case OomCause::limit:
      return fmt::format("{} free on the device, {} needed", format_bytes(finding.bytes),
                         format_bytes(failure.request.driver));
    case OomCause::fragmentation:
      return fmt::format("{} cached would have been enough in one usable piece: {}", format_bytes(finding.bytes),
                         out_of_reach_words(failure));
    case OomCause::demand:
      break;
  }
  return fmt::format("{} missing, even if all {} cached and all {} free had been one piece",
                     format_bytes(finding.bytes), bytes_text(failure.cached), bytes_text(failure.device_free));
}

std::string unknown_cause_words(const OomFailure& failure) {
  if (!failure.caching) return "this allocator says nothing of the memory that there is";
  if (failure.fitting_piece) {
    return "a cached piece would have done: the request was probably of a private pool, which the file does not name";
  }
  if (!failure.device_free) {
    return fmt::format(
        "recordings do not say what the device had free: it was full, or a limit was reached; {} cached were too "
        "little",
        bytes_text(failure.cached));
  }
  return fmt::format("the device had {} free, about what was needed: the driver may need that itself",
                     bytes_text(failure.device_free));
}

std::string change_words(const OomFailure& failure, const OomChange& change) {
  switch (change.remedy) {
    case OomRemedy::free_blocks:
      return fmt::format("less held by {}: {}", stack_text(change.stack), blocks_words(change));
    case OomRemedy::stop_leak:
      return "no leak: `tidemark leaks` shows its places and how fast they grow";
    case OomRemedy::free_device:
      return "less in use on the device by others";
    case OomRemedy::raise_limit:
      return fmt::format("more allowed, at most: a limit of {} or more", format_bytes(failure.limit->below));
    case OomRemedy::empty_private_pool:
      return "given back by private pools (CUDA graphs, torch.cuda.MemPool) whose segments were free as a whole";
    case OomRemedy::empty_cache_before:
      return "given back before the CUDA graph is captured: freed during capture, memory stays with the default pool";
    case OomRemedy::same_stream:
      return "in one piece on another stream: allocate there, or free it before it is needed here";
    case OomRemedy::smaller_request:
      return fmt::format("less asked for ({} of this request)", share_of(change.bytes, failure.request.bytes));
    case OomRemedy::expandable:
      break;
  }
  return "that PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True could have given back, in whole handles; likely enough";
}

std::string check_words(const Explanation& explanation, const OomFailure& failure, const OomChange& change) {
  const std::string file = printable(base_name(explanation.recording.path));
  switch (change.remedy) {
    case OomRemedy::free_blocks:
      return fmt::format("tidemark table {} --at {}ns lists what was alive; after the change, tidemark compare OLD NEW",
                         file, failure.last_ns);
    case OomRemedy::stop_leak:
      return fmt::format("tidemark leaks {}; after the change it says no_leak", file);
    case OomRemedy::free_device:
      return "nvidia-smi lists the processes on the device";
    case OomRemedy::raise_limit:
      return "the message of PyTorch says what is allowed; torch.cuda.set_per_process_memory_fraction sets it";
    case OomRemedy::empty_private_pool:
      return fmt::format("tidemark table {} --by pool; tidemark fragmentation shows segments without any block", file);
    case OomRemedy::empty_cache_before:
      return "torch.cuda.empty_cache() after the last free before the capture; then record again";
    case OomRemedy::same_stream:
      return fmt::format("tidemark table {} --by stream", file);
    case OomRemedy::smaller_request:
      return "record again with the smaller size: what else is held may change with it";
    case OomRemedy::expandable:
      break;
  }
  return "record again with it; tidemark fragmentation NEW shows what is left in pieces";
}

}  // namespace tidemark
