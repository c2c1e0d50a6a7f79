// Calls of CUDA by which PyTorch's allocators take memory and give it back, seen at the import slots of its libraries,
// so without CUPTI: the segments of the caching allocator, which so are known to be released when no block is allocated
// or freed (torch.cuda.empty_cache()), and page-locked memory of the host. They are rare: no cost for what is cached.
#pragma once

namespace tidemark::process {

/// To be called once PyTorch's libraries for CUDA are loaded, and again after others were. Takes the loader's lock.
/// Keeps errno.
void patch_allocator_calls() noexcept;

}  // namespace tidemark::process
