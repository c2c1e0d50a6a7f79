// Reads one recording, front to back, one batch of events at a time.
//
// Files from others are hostile: nothing is trusted before it was checked, memory is bounded by what the file really
// holds, and every error names the file and the offset. One thread at a time; definitions() grows while reading.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/definitions.h"
#include "trace/event.h"
#include "trace/sample_codec.h"

namespace tidemark {

class TraceReader {
 public:
  /// Opens a file. Fails for a file that is not a recording, that is too new, or that cannot be read.
  static Result<std::unique_ptr<TraceReader>> open(const std::string& path);
  /// Reads from memory that must outlive the reader. `name` is what errors call it.
  static Result<std::unique_ptr<TraceReader>> from_memory(std::span<const std::byte> bytes, std::string name);
  virtual ~TraceReader() = default;

  /// Replaces `batch` by the next events (a frame's worth; never empty when true is returned). False at the end. Damage
  /// in the middle ends the reading like a torn tail does: it is not an error, but a Loss in definitions().losses.
  virtual Result<bool> next(std::vector<Event>& batch) = 0;

  /// Has next() give the samples that lie between the events to `observe`, in the order of the file.
  virtual void observe_samples(SampleObserver observe) = 0;

  /// Everything defined so far; complete once next() has returned false. Ids in a batch are always defined.
  [[nodiscard]] virtual const Definitions& definitions() const = 0;

  /// For progress: bytes consumed and in all.
  [[nodiscard]] virtual std::uint64_t offset() const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
};

}  // namespace tidemark
