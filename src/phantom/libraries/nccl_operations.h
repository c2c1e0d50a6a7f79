// The NCCL calls that need other ranks, and groups of them: each is retried until it is done, so that the calls of a
// group, and those of several ranks in one thread, do not wait for one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "phantom/libraries/nccl_reduction.h"
#include "phantom/libraries/nccl_transport.h"

namespace tidemark::phantom {

/// ncclResult_t
enum NcclResult : int {
  kNcclSuccess = 0,
  kNcclSystemError = 2,
  kNcclInvalidArgument = 4,
  kNcclInvalidUsage = 5,
  kNcclRemoteError = 6,
  kNcclInProgress = 7,
};

/// ncclComm.
struct NcclCommunicator {
  std::unique_ptr<NcclTransport> transport;
  int device = 0;
  std::uint64_t collectives = 0;  ///< number of calls so far
  std::uint64_t splits = 0;
  std::atomic<bool> aborted{false};
};

enum class NcclKind : std::uint32_t {
  join,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  gather,
  reduce_scatter,
  all_to_all,
  send,
  receive,
};

/// One call. `from` and `to` are buffers of this rank, on a device or the host.
struct NcclOperation {
  NcclCommunicator* communicator = nullptr;
  NcclKind kind = NcclKind::join;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;  ///< elements, as the call counts them
  int type = 0;
  int reduction = 0;
  Reduction how = {};
  int peer = 0;  ///< the root, or the other rank of a message

  std::uint64_t number = 0;  ///< for a collective
  bool posted = false;
};

/// Executes an operation, or queues it until this thread's group ends.
[[nodiscard]] int enqueue(const NcclOperation& operation);
void start_group();
/// Executes all operations of the group. Returns the first failure, or success.
[[nodiscard]] int end_group();

}  // namespace tidemark::phantom
