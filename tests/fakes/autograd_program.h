// The part of the test program that evaluates nodes of autograd's graphs.
#pragma once

#include "library.h"

/// Backward passes inside one another, on several threads, that end well, with exceptions, or with their thread. Prints
/// what is known of each allocation: its size, which no other has, the thread's next number, and class, number and
/// thread of the node that was evaluated; - where there is none. libtorch_cpu lies beside `torch_path`.
int autograd(const Torch& torch, const char* torch_path);
