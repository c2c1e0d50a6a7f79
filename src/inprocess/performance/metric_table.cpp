#include "inprocess/performance/metric_table.h"

#include <functional>
#include <new>

namespace tidemark {

MetricTable::~MetricTable() {
  for (std::size_t n = 0; n < size(); ++n) delete ordered_[n];
}

NamedMetric* MetricTable::find(std::string_view name) noexcept {
  name = name.substr(0, kMaxNameBytes);
  for (std::size_t slot = std::hash<std::string_view>()(name) % kSlots;; slot = (slot + 1) % kSlots) {
    NamedMetric* const metric = slots_[slot].load(std::memory_order_acquire);
    if (metric == nullptr) return add(name, slot);
    if (metric->name == name) return metric;
  }
}

NamedMetric* MetricTable::add(std::string_view name, std::size_t slot) noexcept {
  try {
    const std::lock_guard lock(adding_);
    // Another thread may have taken the slot first.
    for (; slots_[slot].load(std::memory_order_relaxed) != nullptr; slot = (slot + 1) % kSlots) {
      if (slots_[slot].load(std::memory_order_relaxed)->name == name) return slots_[slot];
    }
    const std::size_t count = size_.load(std::memory_order_relaxed);
    if (count == kMaxNames) return nullptr;
    auto* const metric = new NamedMetric(name);
    ordered_[count] = metric;
    size_.store(count + 1, std::memory_order_release);
    slots_[slot].store(metric, std::memory_order_release);
    return metric;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace tidemark
