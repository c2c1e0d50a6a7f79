// The tool that a program's environment names for CUDA to load.
#pragma once

namespace tidemark::phantom {

/// Loads the library that CUDA_INJECTION64_PATH names and calls its InitializeInjection(), as the driver does when it
/// is initialized. Does nothing the second time. Thread-safe.
void load_injected_tool();

}  // namespace tidemark::phantom
