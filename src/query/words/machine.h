// Words for what a machine has and for what `tidemark doctor` found, the same in text and JSON. Not safe to print:
// names of devices and programs are as the system reports them.
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace tidemark {

/// "GPU 0: NVIDIA H100", "GPU 0 instance 1: ...".
[[nodiscard]] std::string device_title(const DeviceInfo& info);

/// "12.3 GiB available of 31.3 GiB; …": of the host, and what the control group allows.
[[nodiscard]] std::string host_memory_text(const Inventory& inventory);

struct CheckText {
  std::string text;    ///< what was found
  std::string advice;  ///< what to do about it; empty when there is nothing to do
};
[[nodiscard]] CheckText check_text(const Check& check, const Diagnosis& diagnosis);

}  // namespace tidemark
