// Calls of CUDA in which PyTorch's allocators take and release memory, intercepted at the import slots of its
// libraries, so without CUPTI: segments of the caching allocator, which so are seen released without an allocation or
// free (torch.cuda.empty_cache()), and page-locked host memory. They are rare: cached memory has no cost.
#pragma once

namespace tidemark::process {

/// Call this once PyTorch's libraries for CUDA are loaded, and again after other libraries were. Takes the loader's
/// lock. Keeps errno.
void patch_allocator_calls() noexcept;

}  // namespace tidemark::process
