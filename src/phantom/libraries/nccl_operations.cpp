#include "phantom/libraries/nccl_operations.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "phantom/gpu/known_bytes.h"
#include "phantom/gpu/memory.h"

namespace tidemark::phantom {
namespace {

thread_local int group_depth = 0;
thread_local std::vector<NcclOperation>* group = nullptr;  // of this thread; null if the depth is 0

constexpr long kNap = 100'000;  // nanoseconds between two tries, after the first thousand
constexpr std::uint64_t kTriesToYield = 1000;
constexpr std::uint64_t kTriesToAsk = 5000;     // half a second between checks whether the other ranks still exist
constexpr std::uint64_t kPatience = 6'000'000;  // ten minutes, PyTorch's timeout for NCCL

const char* name(NcclKind kind) {
  constexpr const char* kNames[] = {"ncclCommInitRank", "ncclAllReduce", "ncclReduce",        "ncclBroadcast",
                                    "ncclAllGather",    "ncclGather",    "ncclReduceScatter", "ncclAlltoAll",
                                    "ncclSend",         "ncclRecv"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool is_message(NcclKind kind) {
  return kind == NcclKind::send || kind == NcclKind::receive;
}

std::size_t ranks_of(const NcclOperation& operation) {
  return static_cast<std::size_t>(operation.communicator->transport->size());
}

// Bytes of `count` elements.
std::size_t bytes_of(const NcclOperation& operation) {
  return operation.count * *element_size(operation.type);
}

// Bytes that this rank sends to the others.
std::size_t handed_bytes(const NcclOperation& operation) {
  switch (operation.kind) {
    case NcclKind::reduce_scatter:
    case NcclKind::all_to_all:
      return bytes_of(operation) * ranks_of(operation);
    case NcclKind::broadcast:
      return operation.peer == operation.communicator->transport->rank() ? bytes_of(operation) : 0;
    default:
      return bytes_of(operation);
  }
}

// The same if their values are known; 0 if kernels would have computed them: then the others do not know theirs either.
std::size_t known_bytes_of(const NcclOperation& operation, std::size_t bytes) {
  const bool known = !is_device_address(operation.from) || known_bytes().knows(operation.from, bytes);
  return known ? bytes : 0;
}

NcclCall describe(const NcclOperation& operation) {
  const bool message = is_message(operation.kind);
  return {static_cast<std::uint32_t>(message ? NcclKind::send : operation.kind),
          static_cast<std::uint32_t>(operation.type), operation.count,
          message ? 0 : static_cast<std::uint32_t>(operation.reduction),
          message ? 0 : static_cast<std::uint32_t>(operation.peer)};
}

int differs(const NcclOperation& operation, int rank, const NcclCall& other) {
  std::fprintf(
      stderr,
      "tidemark: NCCL of the phantom GPU: rank %d called %s with %zu elements of type %d, rank %d %s with %llu "
      "of type %u; the call fails\n",
      operation.communicator->transport->rank(), name(operation.kind), operation.count, operation.type, rank,
      name(static_cast<NcclKind>(other.kind)), static_cast<unsigned long long>(other.count), other.type);
  return kNcclInvalidUsage;
}

// With the parts of all ranks present: the result of the collective for this rank.
void combine_parts(const NcclOperation& operation, const std::vector<const void*>& parts) {
  const std::size_t bytes = bytes_of(operation);
  const int rank = operation.communicator->transport->rank();
  const auto root = static_cast<std::size_t>(operation.peer);
  const bool is_root = operation.peer == rank;
  auto* const to = static_cast<char*>(operation.to);
  const auto offset = static_cast<std::size_t>(rank) * bytes;
  std::vector<const void*> shifted = parts;
  switch (operation.kind) {
    case NcclKind::broadcast:
      std::memcpy(to, parts[root], bytes);
      break;
    case NcclKind::gather:
      if (!is_root) break;
      [[fallthrough]];
    case NcclKind::all_gather:
      for (std::size_t from = 0; from < parts.size(); ++from) std::memcpy(to + from * bytes, parts[from], bytes);
      break;
    case NcclKind::all_to_all:
      for (std::size_t from = 0; from < parts.size(); ++from)
        std::memcpy(to + from * bytes, static_cast<const char*>(parts[from]) + offset, bytes);
      break;
    case NcclKind::reduce:
      if (!is_root) break;
      [[fallthrough]];
    case NcclKind::all_reduce:
    case NcclKind::reduce_scatter:
      if (operation.kind == NcclKind::reduce_scatter)
        for (const void*& part : shifted) part = static_cast<const char*>(part) + offset;
      if (!reduce(to, shifted.data(), static_cast<int>(parts.size()), operation.count, operation.type, operation.how))
        std::memcpy(to, shifted[static_cast<std::size_t>(rank)], bytes);
      break;
    default:
      break;
  }
}

// The bytes of its result, which is on the device.
std::size_t result_bytes(const NcclOperation& operation) {
  const auto parts = static_cast<std::size_t>(operation.communicator->transport->size());
  switch (operation.kind) {
    case NcclKind::gather:
    case NcclKind::all_gather:
    case NcclKind::all_to_all:
      return parts * bytes_of(operation);
    default:
      return bytes_of(operation);
  }
}

bool has_result(const NcclOperation& operation) {
  const bool of_root = operation.kind == NcclKind::gather || operation.kind == NcclKind::reduce;
  return !of_root || operation.peer == operation.communicator->transport->rank();
}

int try_collective(NcclOperation& operation) {
  NcclTransport& transport = *operation.communicator->transport;
  const NcclCall call = describe(operation);
  if (!operation.posted &&
      !transport.post(operation.number, call, operation.from, known_bytes_of(operation, handed_bytes(operation))))
    return kNcclInProgress;
  operation.posted = true;
  std::vector<const void*> parts;
  bool kept = true;  // whether the bytes of all relevant parts have arrived
  for (int rank = 0; rank < transport.size(); ++rank) {
    const NcclParcel* const part = transport.part(operation.number, rank);
    if (part == nullptr) return kNcclInProgress;
    if (part->call != call) return differs(operation, rank, part->call);
    parts.push_back(part->data);
    if (operation.kind != NcclKind::broadcast || rank == operation.peer) kept = kept && part->bytes != 0;
  }
  if (kept) {
    combine_parts(operation, parts);
    if (has_result(operation)) known_bytes().add(operation.to, result_bytes(operation));
  } else if (has_result(operation) && is_device_address(operation.to)) {
    known_bytes().forget(operation.to, result_bytes(operation));
  }
  transport.finish(operation.number);
  return kNcclSuccess;
}

int try_operation(NcclOperation& operation) {
  NcclTransport& transport = *operation.communicator->transport;
  switch (operation.kind) {
    case NcclKind::join:
      return transport.complete() ? kNcclSuccess : kNcclInProgress;
    case NcclKind::send:
      return transport.send(operation.peer, describe(operation), operation.from,
                            known_bytes_of(operation, bytes_of(operation)))
                 ? kNcclSuccess
                 : kNcclInProgress;
    case NcclKind::receive: {
      const NcclParcel* const message = transport.message(operation.peer);
      if (message == nullptr) return kNcclInProgress;
      if (message->call != describe(operation)) return differs(operation, operation.peer, message->call);
      if (message->bytes != 0) {
        std::memcpy(operation.to, message->data, message->bytes);
        known_bytes().add(operation.to, message->bytes);
      } else if (is_device_address(operation.to)) {
        known_bytes().forget(operation.to, bytes_of(operation));
      }
      transport.take(operation.peer);
      return kNcclSuccess;
    }
    default:
      return try_collective(operation);
  }
}

int check_others(const NcclOperation& operation, std::uint64_t tries) {
  if (operation.communicator->aborted.load()) return kNcclInvalidUsage;
  const int ended = operation.communicator->transport->ended_rank();
  if (ended < 0 && tries < kPatience) return kNcclInProgress;
  std::fprintf(stderr, "tidemark: NCCL of the phantom GPU: rank %d waited in %s for ranks that %s; the call fails\n",
               operation.communicator->transport->rank(), name(operation.kind),
               ended < 0 ? "did not come" : "have ended");
  return kNcclRemoteError;
}

// Whether `after` must wait for `before`: collectives of a communicator keep their order, and so do messages from one
// rank to another.
bool keeps_order(const NcclOperation& before, const NcclOperation& after) {
  if (before.communicator != after.communicator) return false;
  if (is_message(before.kind) != is_message(after.kind)) return false;
  return !is_message(after.kind) || (before.kind == after.kind && before.peer == after.peer);
}

int run(std::vector<NcclOperation>& operations) {
  for (std::uint64_t tries = 0; !operations.empty(); ++tries) {
    bool moved = false;
    for (std::size_t index = 0; index < operations.size();) {
      NcclOperation& operation = operations[index];
      const bool behind =
          std::any_of(operations.begin(), operations.begin() + static_cast<std::ptrdiff_t>(index),
                      [&operation](const NcclOperation& before) { return keeps_order(before, operation); });
      const int result = behind ? kNcclInProgress : try_operation(operation);
      if (result == kNcclInProgress) {
        ++index;
        continue;
      }
      if (result != kNcclSuccess) return result;
      operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(index));
      moved = true;
    }
    if (moved) tries = 0;
    if (operations.empty()) break;
    if (tries < kTriesToYield) {
      sched_yield();
      continue;
    }
    if (tries % kTriesToAsk == 0)
      for (const NcclOperation& operation : operations)
        if (const int result = check_others(operation, tries); result != kNcclInProgress) return result;
    const timespec nap{0, kNap};
    nanosleep(&nap, nullptr);
  }
  return kNcclSuccess;
}

}  // namespace

int enqueue(const NcclOperation& operation) {
  if (operation.communicator == nullptr) return kNcclInvalidArgument;
  if (!element_size(operation.type) || operation.peer < 0 ||
      operation.peer >= operation.communicator->transport->size())
    return kNcclInvalidArgument;
  NcclOperation numbered = operation;
  if (operation.kind != NcclKind::join && !is_message(operation.kind))
    numbered.number = ++operation.communicator->collectives;
  if (group_depth != 0) {
    group->push_back(numbered);
    return kNcclSuccess;
  }
  std::vector<NcclOperation> single{numbered};
  return run(single);
}

void start_group() {
  if (group_depth++ == 0) group = new std::vector<NcclOperation>;
}

int end_group() {
  if (group_depth == 0) return kNcclInvalidUsage;
  if (--group_depth != 0) return kNcclSuccess;
  const std::unique_ptr<std::vector<NcclOperation>> operations(group);
  group = nullptr;
  return run(*operations);
}

}  // namespace tidemark::phantom
