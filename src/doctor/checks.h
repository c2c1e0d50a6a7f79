// The checks, one function for each subject. Each appends what it found to Diagnosis::checks.
#pragma once

#include "doctor/diagnosis.h"

namespace tidemark {

void check_gpus(Diagnosis& diagnosis);
/// Finds the interpreter of `program` (python3 when empty) and asks it; then its stacks and its PyTorch.
void check_python(const std::string& program, Diagnosis& diagnosis);
/// What `tidemark run --driver on` needs, after check_python().
void check_cupti(Diagnosis& diagnosis);
void check_injections(Diagnosis& diagnosis);
void check_preload(Diagnosis& diagnosis);
void check_memory(Diagnosis& diagnosis);
/// memfd, the socket's folder, what is read in /proc, and space for recordings in this folder.
void check_system(Diagnosis& diagnosis);

[[nodiscard]] bool has_nvidia_gpu(const Inventory& inventory);

}  // namespace tidemark
