#include "analyze/plan/plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace tidemark {
namespace {

// The number of the planned GPU in the recording; the program's own if the recording has none.
std::uint32_t gpu_of(const Device& device, const std::vector<SampledDevice>& sampled) {
  const auto index = static_cast<std::uint32_t>(static_cast<unsigned char>(device.index));
  const auto found = std::find_if(sampled.begin(), sampled.end(),
                                  [index](const SampledDevice& other) { return other.cuda_index == index; });
  return found == sampled.end() ? index : found->index;
}

void add_devices(Plan& plan, const PlannedRecording& recording) {
  const std::vector<PlannedProcess>& processes = plan.facts.processes;
  const auto process = std::find_if(processes.begin(), processes.end(), [&](const PlannedProcess& other) {
    return other.pid == recording.summary.recording.process.pid;
  });
  for (const SummaryDevice& used : recording.summary.devices) {
    // A process whose first request failed held no memory, and does not fit.
    const bool asked = used.totals.peak_allocated_at_ns || used.totals.out_of_memory_count != 0;
    if (used.totals.device.type != DeviceType::cuda || !asked) continue;
    PlannedDevice& device = plan.devices.emplace_back();
    device.recording = recording.summary.recording;
    device.summary = used;
    device.leaks = recording.summary.leaks;
    device.gpu = gpu_of(used.totals.device, recording.devices);
    if (process == processes.end()) continue;
    device.steps = process->steps;
    if (device.gpu < process->driver_bytes.size()) device.driver_bytes = process->driver_bytes[device.gpu];
    std::copy_if(process->libraries.begin(), process->libraries.end(), std::back_inserter(device.libraries),
                 [&device](const PlannedLibrary& library) { return library.gpu == device.gpu; });
    if (plan.facts.nccl && process->communicators != 0) {
      device.nccl_bytes = plan.facts.nccl->first + (process->communicators - 1) * plan.facts.nccl->further;
    }
  }
}

struct Gpu {
  std::uint64_t used = 0;
  std::size_t processes = 0;
  bool out_of_memory = false;
};

// The processes of a GPU need not peak at the same time, and libraries take memory too: the maximum that all held at
// once is measured, with NCCL's memory.
void add_up(Plan& plan) {
  std::map<std::uint32_t, Gpu> gpus;
  for (const PlannedDevice& device : plan.devices) {
    Gpu& gpu = gpus[device.gpu];
    gpu.used += peak_reserved_bytes(device) + plan.facts.context_bytes + device.driver_bytes + device.nccl_bytes;
    gpu.out_of_memory = gpu.out_of_memory || device.summary.totals.out_of_memory_count != 0;
    ++gpu.processes;
  }
  for (auto& [number, gpu] : gpus) {
    if (number < plan.facts.device_peaks.size()) gpu.used = plan.facts.device_peaks[number];
  }
  for (PlannedDevice& device : plan.devices) {
    const Gpu& gpu = gpus[device.gpu];
    device.process_count = gpu.processes;
    device.fits = !gpu.out_of_memory && gpu.used <= plan.facts.memory_bytes;
    plan.fits = plan.fits && device.fits;
    device.device_used_bytes = gpu.used;
    device.headroom_bytes = device.fits ? plan.facts.memory_bytes - gpu.used : 0;
  }
}

}  // namespace

std::uint64_t peak_reserved_bytes(const PlannedDevice& device) {
  return device.summary.totals.peak_reserved_bytes.value_or(device.summary.totals.peak_allocated_bytes);
}

Plan make_plan(PlanFacts facts, const std::vector<PlannedRecording>& recordings) {
  Plan plan;
  plan.facts = std::move(facts);
  for (const PlannedRecording& recording : recordings) {
    add_devices(plan, recording);
    if (recording.summary.pinned) plan.pinned_bytes += recording.summary.pinned->peak;
  }
  add_up(plan);
  std::stable_sort(plan.devices.begin(), plan.devices.end(), [](const PlannedDevice& left, const PlannedDevice& right) {
    const auto weight = [](const PlannedDevice& device) {
      return std::tuple(!device.fits, device.summary.totals.out_of_memory_count != 0, device.device_used_bytes,
                        peak_reserved_bytes(device));
    };
    return weight(left) != weight(right) ? weight(left) > weight(right) : left.gpu < right.gpu;
  });
  for (const PlannedProcess& process : plan.facts.processes) {
    plan.steps_by_marks = plan.steps_by_marks || process.steps_by_marks;
    if (process.steps != 0) plan.steps = plan.steps == 0 ? process.steps : std::min(plan.steps, process.steps);
  }
  return plan;
}

}  // namespace tidemark
