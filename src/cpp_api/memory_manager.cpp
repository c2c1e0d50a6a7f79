#include <tidemark/memory_manager.h>

#include <memory>

#include "batching/batch_search.h"
#include "batching/free_memory.h"
#include "cpp_api/results.h"
#include "inprocess/cuda/cuda_driver.h"

namespace tidemark {
TIDEMARK_INLINE
namespace v1 {
struct MemoryManager::Parts {
  explicit Parts(int device)
      : driver(*value_or_throw(cuda::driver())),
        context(value_or_throw(cuda::PrimaryContext::retain(driver, device))) {}

  const cuda::Driver& driver;
  cuda::PrimaryContext context;
};

MemoryManager::MemoryManager(int device) : parts_(std::make_unique<Parts>(device)) {}

MemoryManager::~MemoryManager() = default;

MemoryState MemoryManager::check_memory() const {
  const FreeMemory memory = value_or_throw(free_memory(parts_->driver, parts_->context.get()));
  return {memory.free_bytes, memory.total_bytes};
}

BatchSize MemoryManager::auto_batch_size(const std::function<bool(std::size_t)>& fits,
                                         const BatchSizeSettings& settings) const {
  if (!fits) throw v1::Error("auto_batch_size: there is no function to call");
  BatchSearchOptions options;
  options.start = settings.start;
  options.maximum = settings.maximum;
  options.multiple_of = settings.multiple_of;
  options.margin = settings.margin;
  options.probes = settings.max_probes;
  const BatchSearchResult found = value_or_throw(find_batch_size(parts_->driver, parts_->context.get(), fits, options));
  BatchSize result;
  result.batch_size = found.batch_size;
  result.does_not_fit = found.does_not_fit;
  result.probes = found.probes;
  result.slope_bytes = found.slope_bytes;
  result.intercept_bytes = found.intercept_bytes;
  result.maximum_fits = found.end == BatchSearchEnd::maximum_fits;
  result.probes_used = found.end == BatchSearchEnd::probes_used;
  return result;
}

}  // namespace v1
}  // namespace tidemark
