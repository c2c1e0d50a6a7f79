// The capture of CUDA graphs: which streams are capturing, and how many nodes a graph has.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {

/// A graph. It holds no work, as none is ever done.
struct Graph {
  unsigned long long id = 0;  ///< of its capture, from 1
  std::size_t nodes = 0;
};

/// All captures of the process. Thread-safe; a question costs no lock while nothing captures.
class Captures {
 public:
  /// A graph without nodes. The process owns it until destroy().
  [[nodiscard]] Graph* create();
  void destroy(Handle graph);

  /// Starts a capture into `graph`, or into a new one. False when the stream captures already.
  bool begin(Handle stream, Handle graph);
  /// Ends the capture that `stream` belongs to, for all its streams. None when there is none.
  [[nodiscard]] Graph* end(Handle stream);
  /// The graph that `stream` captures into, or none.
  [[nodiscard]] Graph* of(Handle stream);

  /// Counts a node when `stream` is capturing; says whether it is.
  bool launch(Handle stream);

  // A stream that waits for an event of a capturing stream captures too.
  void record(Handle event, Handle stream);
  void wait(Handle stream, Handle event);
  void forget(Handle event);

 private:
  std::mutex mutex_;
  std::map<Graph*, std::unique_ptr<Graph>> graphs_;
  std::map<Handle, Graph*> streams_;  // that capture
  std::map<Handle, Graph*> events_;   // recorded by a stream while it captured
  unsigned long long last_id_ = 0;
};

[[nodiscard]] Captures& captures();

}  // namespace tidemark::phantom
