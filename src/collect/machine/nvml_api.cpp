#include "collect/machine/nvml_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tidemark::nvml {
namespace {

/// The first of `names` that the library exports: versions of one function that take the same arguments.
template <typename Function, typename... Names>
void find(void* handle, Function& function, Names... names) {
  for (const char* name : {names...}) {
    if (function == nullptr) function = reinterpret_cast<Function>(::dlsym(handle, name));
  }
}

}  // namespace

Library::Library(void* handle) : handle_(handle) {
  Functions& f = functions_;
  find(handle, f.init, "nvmlInit_v2");
  find(handle, f.shutdown, "nvmlShutdown");
  find(handle, f.error_string, "nvmlErrorString");
  find(handle, f.driver_version, "nvmlSystemGetDriverVersion");
  find(handle, f.cuda_version, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion");
  find(handle, f.device_count, "nvmlDeviceGetCount_v2");
  find(handle, f.device_by_index, "nvmlDeviceGetHandleByIndex_v2");
  find(handle, f.name, "nvmlDeviceGetName");
  find(handle, f.uuid, "nvmlDeviceGetUUID");
  find(handle, f.pci_info, "nvmlDeviceGetPciInfo_v3");
  find(handle, f.memory, "nvmlDeviceGetMemoryInfo");
  find(handle, f.memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  find(handle, f.utilization, "nvmlDeviceGetUtilizationRates");
  find(handle, f.temperature, "nvmlDeviceGetTemperature");
  find(handle, f.power, "nvmlDeviceGetPowerUsage");
  find(handle, f.compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3",
       "nvmlDeviceGetComputeRunningProcesses_v2");
  find(handle, f.graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3",
       "nvmlDeviceGetGraphicsRunningProcesses_v2");
  find(handle, f.compute_processes_v1, "nvmlDeviceGetComputeRunningProcesses");
  find(handle, f.graphics_processes_v1, "nvmlDeviceGetGraphicsRunningProcesses");
  find(handle, f.mig_mode, "nvmlDeviceGetMigMode");
  find(handle, f.mig_count, "nvmlDeviceGetMaxMigDeviceCount");
  find(handle, f.mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex");
}

Library::~Library() {
  ::dlclose(handle_);
}

Result<std::unique_ptr<Library>> Library::load(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error{::dlerror()};
  auto library = std::unique_ptr<Library>(new Library(handle));
  const Functions& f = library->functions();
  if (f.init == nullptr || f.shutdown == nullptr || f.device_count == nullptr || f.device_by_index == nullptr) {
    return Error{fmt::format("{} lacks functions that every NVML since 2013 has", name)};
  }
  return library;
}

std::string Library::describe(Return code) const {
  const char* text = functions_.error_string == nullptr ? nullptr : functions_.error_string(code);
  return fmt::format("NVML: {} ({})", text == nullptr ? "error" : text, static_cast<int>(code));
}

}  // namespace tidemark::nvml
