// The part of the test program that evaluates nodes of autograd's graphs.
#pragma once

#include "library.h"

/// Nested backward passes, on several threads, that end well, with exceptions, or with their thread. Prints for each
/// allocation its unique size, the thread's next number, and class, number and thread of the node being evaluated; - if
/// there is none. libtorch_cpu is beside `torch_path`.
int autograd(const Torch& torch, const char* torch_path);
