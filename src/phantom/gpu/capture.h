// The capture of CUDA graphs: the capturing streams, and the number of nodes of a graph.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "phantom/gpu/abi.h"

namespace tidemark::phantom {

/// A graph. It contains no work, because none is executed.
struct Graph {
  unsigned long long id = 0;  ///< of its capture, from 1
  std::size_t nodes = 0;
};

/// All captures of the process. Thread-safe; queries take no lock while nothing is captured.
class Captures {
 public:
  /// A graph without nodes. The process owns it until destroy().
  [[nodiscard]] Graph* create();
  void destroy(Handle graph);

  /// Starts a capture into `graph`, or into a new one. False if the stream is capturing already.
  bool begin(Handle stream, Handle graph);
  /// Ends the capture that `stream` belongs to, for all its streams. Null if there is none.
  [[nodiscard]] Graph* end(Handle stream);
  /// Whether any stream is capturing.
  [[nodiscard]] bool any() const;
  /// The graph that `stream` captures into, or null.
  [[nodiscard]] Graph* of(Handle stream);

  /// Counts a node if `stream` is capturing; returns whether it is.
  bool launch(Handle stream);

  // A stream that waits for an event of a capturing stream captures too.
  void record(Handle event, Handle stream);
  void wait(Handle stream, Handle event);
  void forget(Handle event);

 private:
  std::mutex mutex_;
  std::map<Graph*, std::unique_ptr<Graph>> graphs_;
  std::map<Handle, Graph*> streams_;  // capturing streams
  std::map<Handle, Graph*> events_;   // recorded by a capturing stream
  unsigned long long last_id_ = 0;
};

[[nodiscard]] Captures& captures();

}  // namespace tidemark::phantom
