// The script of the stand-ins for libcuda and CUPTI: the JSON file in the variable FAKES_CUDA (all fields optional).
//
//   {"devices": 2, "memory": 85899345920,         GPUs, and the bytes of each (default: one of 80 GiB)
//    "returns": {"cuMemCreate": [0, 2]},          CUresults of a function's calls in their order; later ones succeed
//    "untold": ["cuMemAlloc_v2"],                 functions for which CUPTI is not called
//    "subscribe": 39,                             CUptiResult of every cuptiSubscribe()
//    "largest_id": 640}                           an older CUPTI: ids of functions above are refused
#pragma once

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace fakes {

inline const nlohmann::json& script() {
  static const nlohmann::json script = [] {
    const char* path = std::getenv("FAKES_CUDA");
    return path == nullptr ? nlohmann::json::object() : nlohmann::json::parse(std::ifstream(path));
  }();
  return script;
}

}  // namespace fakes
