// tidemark plan --verify: the plan beside a run on the GPU of this machine.
#pragma once

#include <string>
#include <vector>

namespace tidemark::cli {

struct VerifyRequest {
  std::vector<std::string> options;  ///< further ones of the plan
  std::string gpu;                   ///< --gpu; must be the one of this machine
  std::vector<std::string> command;  ///< the program
  bool json = false;
};

/// Plans the program, runs it for as many events as the plan has, compares and prints. The exit code.
int verify_plan(const VerifyRequest& request);

}  // namespace tidemark::cli
