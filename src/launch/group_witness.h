// Tells signals that were sent to our process group from those that were sent to us alone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/scoped_fd.h"

namespace tidemark {

/// Signals by their numbers, 1 to 64.
class SignalSet {
 public:
  void add(int signal) { bits_ |= bit(signal); }
  void remove(int signal) { bits_ &= ~bit(signal); }
  [[nodiscard]] bool contains(int signal) const { return (bits_ & bit(signal)) != 0; }

 private:
  static std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

  std::uint64_t bits_ = 0;
};

/// A child in our process group that blocks all signals and sleeps: what is pending there was sent to the group. Its
/// name and command line are its own, so that what looks for those of tidemark does not find it. One thread.
class GroupWitness {
 public:
  GroupWitness() = default;
  ~GroupWitness() { stop(); }
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  /// With all signals blocked and no other thread running. Without room for a process or a descriptor nothing is known.
  void start();
  /// Ends it. Without that it ends with us.
  void stop();
  [[nodiscard]] std::optional<pid_t> pid() const { return pid_; }

  /// The signals sent to the group since the last call, among them each that has reached this process before the call.
  /// None: not known.
  [[nodiscard]] std::optional<SignalSet> take();

 private:
  std::optional<pid_t> pid_;
  ScopedFd connection_;
};

}  // namespace tidemark
