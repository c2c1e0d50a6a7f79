#include "phantom/gpu/capture.h"

#include <atomic>

namespace tidemark::phantom {
namespace {

std::atomic<int> capturing{0};  // captures in progress

}  // namespace

Graph* Captures::create() {
  const std::lock_guard lock(mutex_);
  auto graph = std::make_unique<Graph>();
  Graph* const address = graph.get();
  graphs_[address] = std::move(graph);
  return address;
}

void Captures::destroy(Handle graph) {
  const std::lock_guard lock(mutex_);
  graphs_.erase(static_cast<Graph*>(graph));
}

bool Captures::begin(Handle stream, Handle graph) {
  if (of(stream) != nullptr) return false;
  auto* const into = graph != nullptr ? static_cast<Graph*>(graph) : create();
  const std::lock_guard lock(mutex_);
  into->id = ++last_id_;
  streams_[stream] = into;
  capturing.fetch_add(1);
  return true;
}

Graph* Captures::end(Handle stream) {
  Graph* const graph = of(stream);
  if (graph == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [graph](const auto& entry) { return entry.second == graph; });
  std::erase_if(events_, [graph](const auto& entry) { return entry.second == graph; });
  capturing.fetch_sub(1);
  return graph;
}

bool Captures::any() const {
  return capturing.load(std::memory_order_acquire) != 0;
}

Graph* Captures::of(Handle stream) {
  if (capturing.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : found->second;
}

bool Captures::launch(Handle stream) {
  Graph* const graph = of(stream);
  if (graph == nullptr) return false;
  const std::lock_guard lock(mutex_);
  ++graph->nodes;
  return true;
}

void Captures::record(Handle event, Handle stream) {
  Graph* const graph = of(stream);
  if (capturing.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  if (graph != nullptr) {
    events_[event] = graph;
  } else {
    events_.erase(event);
  }
}

void Captures::wait(Handle stream, Handle event) {
  if (capturing.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found != events_.end()) streams_[stream] = found->second;
}

void Captures::forget(Handle event) {
  if (capturing.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  events_.erase(event);
}

Captures& captures() {
  static auto* const kCaptures = new Captures;
  return *kCaptures;
}

}  // namespace tidemark::phantom
