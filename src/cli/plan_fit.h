// tidemark plan --fit: the largest value of an argument of the program that fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/gpu_profiles.h"

namespace tidemark::cli {

struct FitRequest {
  std::string argument;     ///< as parse_fitted() takes it
  double margin_share = 0;  ///< of the memory that must stay free
  GpuProfile gpu;
  std::string gpu_option;            ///< as --gpu names it
  std::uint64_t memory_bytes = 0;    ///< of each device
  std::vector<std::string> options;  ///< further ones of each plan
  std::vector<std::string> command;  ///< the program
  bool json = false;
};

/// Plans until the answer is known and prints it. The exit code.
int fit_plan(const FitRequest& request);

}  // namespace tidemark::cli
