// Connects the ranks of a phantom NCCL communicator: a shared-memory segment that the ranks of this machine and user
// map, named by the communicator's unique id. Only small buffers are exchanged; larger ones are only described.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "phantom/gpu/memory.h"

namespace tidemark::phantom {

/// A rank's description of its part in a collective, or of a message. Ranks with different calls do not match.
struct NcclCall {
  std::uint32_t kind;
  std::uint32_t type;
  std::uint64_t count;
  std::uint32_t reduction;
  std::uint32_t root;
  bool operator==(const NcclCall&) const = default;
};

/// A call with the bytes that come with it, if these are at most kKeptCopyBytes.
struct NcclParcel {
  NcclCall call;
  std::uint64_t bytes;  ///< 0 if it was too large
  char data[kKeptCopyBytes];
};

/// The segment, as seen by one rank. No function waits: it returns if it cannot do its part yet. A rank is used by one
/// thread at a time.
class NcclTransport {
 public:
  /// Joins as `rank` of `size`. Null if the segment cannot be created; errno has the reason.
  [[nodiscard]] static std::unique_ptr<NcclTransport> join(const std::string& name, int rank, int size);
  ~NcclTransport();
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Whether all ranks have joined. No other process can join after that.
  [[nodiscard]] bool complete() const;

  /// Posts this rank's part of collective `number` (from 1). False while a rank may still read the previous data there.
  [[nodiscard]] bool post(std::uint64_t number, const NcclCall& call, const void* data, std::size_t bytes);
  /// The part of `rank` in collective `number`; null until it arrives.
  [[nodiscard]] const NcclParcel* part(std::uint64_t number, int rank) const;
  /// Marks all parts of collective `number` as read by this rank.
  void finish(std::uint64_t number);

  /// Puts a message for `to`. False while there is no room for it.
  [[nodiscard]] bool send(int to, const NcclCall& call, const void* data, std::size_t bytes);
  /// The oldest message from `from`; null if there is none.
  [[nodiscard]] const NcclParcel* message(int from) const;
  /// Frees the oldest message from `from`.
  void take(int from);

  /// A rank that has joined and whose process has ended; -1 if there is none.
  [[nodiscard]] int ended_rank() const;

 private:
  struct Segment;
  struct Rank;
  struct Mailbox;
  NcclTransport(std::string name, int rank, int size, void* start, std::size_t bytes);
  [[nodiscard]] Rank& at(int rank) const;
  [[nodiscard]] Mailbox& mailbox(int from, int to) const;

  std::string name_;
  int rank_;
  int size_;
  char* start_;
  std::size_t bytes_;
};

}  // namespace tidemark::phantom
