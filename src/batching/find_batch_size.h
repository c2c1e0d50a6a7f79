// Runs the search for a batch size with steps whose peaks are sampled from the driver.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"
#include "batching/batch_search.h"
#include "inprocess/cuda/cuda_driver.h"

namespace tidemark {

/// `fits` runs a step with so many samples and says whether it had the memory. The limit is what is free at first, and
/// a peak what was taken of it at most. An error where the driver does not say what is free, or the options are none.
[[nodiscard]] Result<BatchSearchResult> find_batch_size(const cuda::Driver& driver, cuda::Context context,
                                                        const std::function<bool(std::size_t size)>& fits,
                                                        const BatchSearchOptions& options);

}  // namespace tidemark
