// PyTorch's own operators for the CPU, called on device memory whose values are known: on a thread of the program that
// is invisible to it, and within a budget of processor time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "phantom/values/torch_objects.h"

namespace tidemark::phantom {

/// Facts about an operator that decide how a call of it is treated.
struct OperatorFacts {
  std::int64_t number = -1;   ///< for compute()
  std::size_t arguments = 0;  ///< in a call
  std::size_t results = 0;
  std::uint64_t written = 0;      ///< bits of arguments that it changes
  std::uint64_t overwritten = 0;  ///< of those, the ones whose former values do not matter
  std::uint64_t out = 0;          ///< of those, the ones that it may resize: `out=`
  bool ignored = false;           ///< it changes no device memory, or only through other operators, or NCCL's
  bool computable = false;
  bool zeroes = false;          ///< it sets its only argument to zero
  bool copies = false;          ///< copy_(target, source, …)
  std::int64_t comparison = 0;  ///< 1 to 4: it is >=, >, <=, < with a number
  std::int64_t delivered = -1;  ///< the argument that it may copy to the host, or below 0
  bool reads = false;           ///< it reads one number from the device: its result, or the size of it
};

/// A copied argument or result of an operator.
struct Argument {
  enum class Kind : std::uint8_t { none, integer, number, boolean, text, cpu, tensor, list };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< also of a boolean
  double number = 0;
  std::string text;
  TorchTensor tensor;
  std::vector<char> bytes;  ///< of a tensor of the host, whose memory may be gone when the operator has ended
  std::vector<Argument> list;
};

class HostArithmetic {
 public:
  /// Starts the thread, and checks that this PyTorch's objects can be read. Call it with the GIL, on a thread that is
  /// not the program's. Does nothing if PyTorch is not loaded yet, or at a second call.
  void start();
  /// From now on nothing is computed: the interpreter ends.
  void stop();

  // The functions below are for any thread, with or without the GIL. They wait for the arithmetic without the GIL.

  /// The largest tensor for which an operator is computed now; 0: none, because the budget is used up.
  [[nodiscard]] std::int64_t largest_bytes() const;
  [[nodiscard]] std::optional<OperatorFacts> describe(const char* name, const char* overload);
  /// Computes an operator that reads a number from the device; finish() stores its result. Returns the number; nullopt
  /// if it cannot be computed.
  [[nodiscard]] std::optional<std::int64_t> begin(const OperatorFacts& facts, const std::vector<Argument>& arguments,
                                                  std::int64_t ticket);
  /// Stores the result of begin(). False if it has other sizes or types than `results`.
  [[nodiscard]] bool finish(std::int64_t ticket, const std::vector<TorchTensor>& results);
  /// Computes an operator on device memory, and stores its results there. False if it cannot be computed; arguments
  /// that it changes have any content then.
  [[nodiscard]] bool compute(const OperatorFacts& facts, const std::vector<Argument>& arguments,
                             const std::vector<TorchTensor>& results);
};

[[nodiscard]] HostArithmetic& host_arithmetic();

}  // namespace tidemark::phantom
