#include "analyze/ledger/lines.h"

#include <algorithm>
#include <utility>

#include "analyze/common/driver_calls.h"
#include "base/arithmetic.h"

namespace tidemark {
namespace {

HeldMemory::OnDevice on_device(const HeldMemory& held, std::optional<std::size_t> device) {
  return device && *device < held.devices.size() ? held.devices[*device] : HeldMemory::OnDevice{};
}

// Most bytes first, unknown ones last; stable for equal ones.
template <typename T>
void sort_by_bytes(std::vector<T>& lines) {
  std::stable_sort(lines.begin(), lines.end(), [](const T& left, const T& right) { return left.bytes > right.bytes; });
}

}  // namespace

const SampledProcess* find_recorded_process(const DeviceProcessesSample& sample, std::uint64_t known_bytes) {
  const SampledProcess* candidate = nullptr;
  std::size_t candidates = 0;
  for (const SampledProcess& sampled : sample.processes) {
    if (sampled.kind == ProcessKind::recorded) return &sampled;
    if (sampled.kind != ProcessKind::other_namespace || known_bytes == 0 || sampled.bytes.value_or(0) < known_bytes)
      continue;
    candidate = &sampled;
    ++candidates;
  }
  return candidates == 1 ? candidate : nullptr;
}

std::uint64_t OwnMemory::known_bytes() const {
  std::uint64_t sum = reserved_bytes.value_or(0);
  for (const Library& library : libraries) sum = saturating_add(sum, library.bytes);
  return sum;
}

LedgerIndexes::LedgerIndexes(const Overview& overview, Device device)
    : driver_known_(has_driver_calls(overview)),
      driver_missing_(std::any_of(overview.definitions.losses.begin(), overview.definitions.losses.end(),
                                  [](const Loss& loss) { return loss.kind == Loss::Kind::driver_off; })) {
  for (std::size_t index = 0; index < overview.devices.size(); ++index) {
    const DeviceSummary& summary = overview.devices[index];
    const Device& here = summary.device;
    if (here == device) {
      framework_ = index;
      empty_before_ = summary.has_totals && summary.baseline_bytes.value_or(0) == 0;
    } else if (here.type == DeviceType::cuda_host) {
      host_ = index;
    } else if (device.type == DeviceType::cuda && here.index == device.index) {
      if (here.type == DeviceType::cuda_driver) driver_ = index;
      if (here.type == DeviceType::cuda_managed) managed_ = index;
    }
  }
}

OwnMemory LedgerIndexes::own(const HeldMemory& held, MemoryOwners& owners) const {
  OwnMemory own;
  const HeldMemory::OnDevice framework = on_device(held, framework_);
  own.reserved_bytes = framework.reserved_bytes;
  if (!own.reserved_bytes && empty_before_) own.reserved_bytes = 0;  // before its first event, or without any
  if (own.reserved_bytes) own.allocated_bytes = framework.allocated_bytes;
  const auto had_event = [&](const std::optional<std::size_t>& device) {
    return device && *device < held.devices.size();
  };
  own.began = had_event(framework_) || had_event(driver_);
  own.driver_known = driver_known_;
  own.driver_missing = driver_missing_;
  own.managed_bytes = on_device(held, managed_).allocated_bytes;
  if (host_ || driver_known_) own.pinned_host_bytes = on_device(held, host_).allocated_bytes;
  std::map<std::size_t, std::uint64_t> bytes_of;  // by owner
  for (const StackUsage& usage : held.driver_stacks) {
    if (usage.device != driver_) continue;
    std::uint64_t& bytes = bytes_of[owners.of(usage.stack)];
    bytes = saturating_add(bytes, usage.bytes);
  }
  // The segments of PyTorch's allocator are its reserved memory. It reports them only with an allocation, so after
  // empty_cache() the driver's value is newer; as a stream-ordered pool (cudaMallocAsync) it never reports them.
  if (const auto torch = bytes_of.find(MemoryOwners::kTorchAllocator); torch != bytes_of.end()) {
    const std::uint64_t taken = torch->second;
    if (!framework_) {
      own.reserved_bytes = taken;
      own.allocated_bytes.reset();
    } else if (!driver_missing_ && own.reserved_bytes && taken >= own.allocated_bytes.value_or(0)) {
      own.reserved_bytes = std::min(*own.reserved_bytes, taken);
    }
    torch->second = saturating_subtract(taken, own.reserved_bytes.value_or(0));
  }
  own.libraries.reserve(bytes_of.size());
  for (const auto& [owner, bytes] : bytes_of) {
    if (bytes != 0) own.libraries.push_back({owner, bytes});
  }
  sort_by_bytes(own.libraries);
  return own;
}

ProcessLines read_processes(const DeviceProcessesSample& sample, const OwnMemory* own) {
  ProcessLines part;
  part.time_ns = sample.time_ns;
  const SampledProcess* const process = own == nullptr ? nullptr : find_recorded_process(sample, own->known_bytes());
  bool all_known = true;
  for (const SampledProcess& sampled : sample.processes) {
    if (&sampled == process) continue;
    part.processes.push_back({LedgerPart::process, sampled.bytes, sampled.name, sampled.pid, sampled.kind});
    all_known &= sampled.bytes.has_value();
  }
  sort_by_bytes(part.processes);
  if (!all_known) part.caveats.push_back(LedgerCaveat::other_bytes_unknown);
  if (own == nullptr) return part;
  if (process != nullptr) part.stage = own->began ? ProcessStage::running : ProcessStage::starting;
  if (process == nullptr) {
    part.caveats.push_back(LedgerCaveat::process_not_listed);
  } else if (!process->bytes) {
    part.caveats.push_back(LedgerCaveat::process_bytes_unknown);
  } else if (own->reserved_bytes) {
    const std::uint64_t known = own->known_bytes();
    part.context_bytes = saturating_subtract(*process->bytes, known);
    if (process->kind == ProcessKind::other_namespace) part.caveats.push_back(LedgerCaveat::process_matched);
    if (*process->bytes < known) part.caveats.push_back(LedgerCaveat::process_below_known);
  }
  return part;
}

LedgerBreakdown make_ledger(std::optional<std::uint64_t> time_ns, std::optional<std::uint64_t> used_bytes,
                            const OwnMemory* own, const ProcessLines* processes, const MemoryOwners& owners) {
  LedgerBreakdown ledger;
  ledger.time_ns = time_ns;
  ledger.used_bytes = used_bytes;
  if (own == nullptr) {
    ledger.caveats.push_back(LedgerCaveat::allocator_unknown);
  } else {
    ledger.allocated_bytes = own->allocated_bytes;
    if (own->reserved_bytes && own->allocated_bytes) {
      ledger.cached_bytes = saturating_subtract(*own->reserved_bytes, *own->allocated_bytes);
    } else if (!own->reserved_bytes) {
      ledger.caveats.push_back(LedgerCaveat::reserved_unknown);
    }
    ledger.lines.push_back({LedgerPart::pytorch, own->reserved_bytes, {}});
    for (const OwnMemory::Library& library : own->libraries) {
      std::string name = owners.name(library.owner);
      if (library.owner == MemoryOwners::kTorchAllocator) name += " beyond reserved";
      ledger.lines.push_back({LedgerPart::library, library.bytes, std::move(name)});
    }
    ledger.lines.push_back({LedgerPart::context, processes == nullptr ? std::nullopt : processes->context_bytes, {}});
    if (own->driver_known) {
      ledger.managed_bytes = own->managed_bytes;
    } else {
      ledger.caveats.push_back(LedgerCaveat::libraries_in_context);
    }
    ledger.pinned_host_bytes = own->pinned_host_bytes;
    if (own->driver_missing) ledger.caveats.push_back(LedgerCaveat::driver_calls_missing);
  }
  if (processes != nullptr) {
    ledger.processes_sampled_at_ns = processes->time_ns;
    ledger.lines.insert(ledger.lines.end(), processes->processes.begin(), processes->processes.end());
    ledger.caveats.insert(ledger.caveats.end(), processes->caveats.begin(), processes->caveats.end());
  } else if (used_bytes) {
    ledger.caveats.push_back(LedgerCaveat::processes_unknown);
  }
  if (used_bytes) {
    std::uint64_t sum = 0;
    for (const LedgerLine& line : ledger.lines) sum = saturating_add(sum, line.bytes.value_or(0));
    ledger.unexplained_bytes = static_cast<std::int64_t>(*used_bytes - sum);
  }
  return ledger;
}

}  // namespace tidemark
