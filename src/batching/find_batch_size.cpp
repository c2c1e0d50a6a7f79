#include "batching/find_batch_size.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "batching/free_memory.h"

namespace tidemark {

Result<BatchSearchResult> find_batch_size(const cuda::Driver& driver, cuda::Context context,
                                          const std::function<bool(std::size_t size)>& fits,
                                          const BatchSearchOptions& options) {
  auto search = BatchSearch::create(options);
  if (!search) return search.error();
  // Peaks are what was taken of the memory that was free at first: what a step keeps (workspaces, optimizer state)
  // counts.
  const auto before = free_memory(driver, context);
  if (!before) return before.error();
  search->set_limit(before->free_bytes);
  while (const auto size = search->next()) {
    LowestFreeMemory meter(driver, context);
    const bool fitted = fits(*size);
    const std::optional<std::uint64_t> lowest = meter.stop();
    std::optional<std::uint64_t> peak;
    if (fitted && lowest) peak = before->free_bytes - std::min(before->free_bytes, *lowest);
    search->report(*size, fitted, peak);
  }
  return search->result();
}

}  // namespace tidemark
