// Words for the hardware of a machine and for findings of `tidemark doctor`, the same in text and JSON. Not safe to
// print: names of devices and programs are as the system reports them.
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace tidemark {

/// "GPU 0: NVIDIA H100", "GPU 0 instance 1: ...".
[[nodiscard]] std::string device_title(const DeviceInfo& info);

/// "12.3 GiB available of 31.3 GiB; …": of the host, and the limit of the control group.
[[nodiscard]] std::string host_memory_text(const Inventory& inventory);

struct CheckText {
  std::string text;    ///< finding
  std::string advice;  ///< remedy; empty if none is needed
};
[[nodiscard]] CheckText check_text(const Check& check, const Diagnosis& diagnosis);

}  // namespace tidemark
