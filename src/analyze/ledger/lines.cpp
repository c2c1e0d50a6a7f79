#include "analyze/ledger/lines.h"

#include <algorithm>
#include <utility>

#include "analyze/common/saturating.h"

namespace tidemark {
namespace {

HeldMemory::OnDevice on_device(const HeldMemory& held, std::optional<std::size_t> device) {
  return device && *device < held.devices.size() ? held.devices[*device] : HeldMemory::OnDevice{};
}

// Most bytes first; as they came where they are equal, unknown ones last.
template <typename T>
void sort_by_bytes(std::vector<T>& lines) {
  std::stable_sort(lines.begin(), lines.end(), [](const T& left, const T& right) { return left.bytes > right.bytes; });
}

// The user that the recorded process is: itself, or the only one of another PID namespace that holds enough to be it.
const SampledUser* find_process(const DeviceUsersSample& sample, std::uint64_t known_bytes) {
  const SampledUser* candidate = nullptr;
  std::size_t candidates = 0;
  for (const SampledUser& user : sample.users) {
    if (user.kind == UserKind::recorded) return &user;
    if (user.kind != UserKind::other_namespace || known_bytes == 0 || user.bytes.value_or(0) < known_bytes) continue;
    candidate = &user;
    ++candidates;
  }
  return candidates == 1 ? candidate : nullptr;
}

}  // namespace

std::uint64_t OwnMemory::known_bytes() const {
  std::uint64_t sum = reserved_bytes.value_or(0);
  for (const Library& library : libraries) sum = saturating_add(sum, library.bytes);
  return sum;
}

LedgerIndexes::LedgerIndexes(const Overview& overview, Device device)
    : driver_missing_(std::any_of(overview.definitions.losses.begin(), overview.definitions.losses.end(),
                                  [](const Loss& loss) { return loss.kind == Loss::Kind::driver_off; })) {
  for (std::size_t index = 0; index < overview.devices.size(); ++index) {
    const DeviceSummary& summary = overview.devices[index];
    const Device& here = summary.device;
    driver_known_ |= is_driver_memory(here);
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
  own.driver_known = driver_known_;
  own.driver_missing = driver_missing_;
  own.managed_bytes = on_device(held, managed_).allocated_bytes;
  own.pinned_host_bytes = on_device(held, host_).allocated_bytes;
  std::map<std::size_t, std::uint64_t> bytes_of;  // by owner
  for (const StackUsage& usage : held.driver_stacks) {
    if (usage.device != driver_) continue;
    std::uint64_t& bytes = bytes_of[owners.of(usage.stack)];
    bytes = saturating_add(bytes, usage.bytes);
  }
  // The segments of PyTorch's allocator are what it has reserved. It says what it has only when it hands out blocks, so
  // after empty_cache() the driver knows better; and not at all as a stream-ordered pool (cudaMallocAsync).
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

UsersPart read_users(const DeviceUsersSample& sample, const OwnMemory* own) {
  UsersPart part;
  part.time_ns = sample.time_ns;
  const SampledUser* const process = own == nullptr ? nullptr : find_process(sample, own->known_bytes());
  bool all_known = true;
  for (const SampledUser& user : sample.users) {
    if (&user == process) continue;
    part.processes.push_back({LedgerPart::process, user.bytes, user.name, user.pid, user.kind});
    all_known &= user.bytes.has_value();
  }
  sort_by_bytes(part.processes);
  if (!all_known) part.notes.push_back(LedgerNote::other_bytes_unknown);
  if (own == nullptr) return part;
  part.has_process = process != nullptr;
  if (process == nullptr) {
    part.notes.push_back(LedgerNote::process_not_listed);
  } else if (!process->bytes) {
    part.notes.push_back(LedgerNote::process_bytes_unknown);
  } else if (own->reserved_bytes) {
    const std::uint64_t known = own->known_bytes();
    part.context_bytes = saturating_subtract(*process->bytes, known);
    if (process->kind == UserKind::other_namespace) part.notes.push_back(LedgerNote::process_taken);
    if (*process->bytes < known) part.notes.push_back(LedgerNote::process_below_held);
  }
  return part;
}

LedgerMoment make_ledger(std::optional<std::uint64_t> time_ns, std::optional<std::uint64_t> used_bytes,
                         const OwnMemory* own, const UsersPart* users, const MemoryOwners& owners) {
  LedgerMoment ledger;
  ledger.time_ns = time_ns;
  ledger.used_bytes = used_bytes;
  if (own == nullptr) {
    ledger.notes.push_back(LedgerNote::allocator_unknown);
  } else {
    ledger.allocated_bytes = own->allocated_bytes;
    if (own->reserved_bytes && own->allocated_bytes) {
      ledger.cached_bytes = saturating_subtract(*own->reserved_bytes, *own->allocated_bytes);
    } else if (!own->reserved_bytes) {
      ledger.notes.push_back(LedgerNote::reserved_unknown);
    }
    ledger.lines.push_back({LedgerPart::pytorch, own->reserved_bytes, {}});
    for (const OwnMemory::Library& library : own->libraries) {
      std::string name = owners.name(library.owner);
      if (library.owner == MemoryOwners::kTorchAllocator) name += " beyond reserved";
      ledger.lines.push_back({LedgerPart::library, library.bytes, std::move(name)});
    }
    ledger.lines.push_back({LedgerPart::context, users == nullptr ? std::nullopt : users->context_bytes, {}});
    if (own->driver_known) {
      ledger.managed_bytes = own->managed_bytes;
      ledger.pinned_host_bytes = own->pinned_host_bytes;
    } else {
      ledger.notes.push_back(LedgerNote::libraries_in_context);
    }
    if (own->driver_missing) ledger.notes.push_back(LedgerNote::driver_calls_missing);
  }
  if (users != nullptr) {
    ledger.users_at_ns = users->time_ns;
    ledger.lines.insert(ledger.lines.end(), users->processes.begin(), users->processes.end());
    ledger.notes.insert(ledger.notes.end(), users->notes.begin(), users->notes.end());
  } else if (used_bytes) {
    ledger.notes.push_back(LedgerNote::no_users);
  }
  if (used_bytes) {
    std::uint64_t sum = 0;
    for (const LedgerLine& line : ledger.lines) sum = saturating_add(sum, line.bytes.value_or(0));
    ledger.unexplained_bytes = static_cast<std::int64_t>(*used_bytes - sum);
  }
  return ledger;
}

}  // namespace tidemark
