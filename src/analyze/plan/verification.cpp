#include "analyze/plan/verification.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "trace/reader.h"

namespace tidemark {
namespace {

bool is_of_allocator(const Event& event) {
  const bool counts =
      event.kind == EventKind::allocate || event.kind == EventKind::free || event.kind == EventKind::out_of_memory;
  return counts && event.device.type == DeviceType::cuda;
}

const DeviceEvents* find(const std::vector<DeviceEvents>& devices, const DeviceEvents& like) {
  const auto found = std::ranges::find_if(devices, [&like](const DeviceEvents& device) {
    return device.rank == like.rank && device.device == like.device;
  });
  return found == devices.end() ? nullptr : &*found;
}

VerifiedPeaks peaks_of(std::span<const Event> events) {
  VerifiedPeaks peaks;
  for (const Event& event : events) {
    peaks.allocations += event.kind == EventKind::allocate ? 1U : 0U;
    if (!event.has_totals) continue;
    peaks.allocated = std::max(peaks.allocated, event.total_allocated);
    peaks.reserved = std::max(peaks.reserved, event.total_reserved);
  }
  return peaks;
}

std::optional<EventDifference> first_difference(std::span<const Event> planned, std::span<const Event> real) {
  const auto [our, their] = std::ranges::mismatch(planned, real, [](const Event& one, const Event& other) {
    return one.kind == other.kind && one.size == other.size && one.total_reserved == other.total_reserved;
  });
  if (our == planned.end() && their == real.end()) return std::nullopt;
  EventDifference difference{static_cast<std::size_t>(our - planned.begin()), {}, {}};
  if (our != planned.end()) difference.planned = *our;
  if (their != real.end()) difference.real = *their;
  return difference;
}

bool is_near(std::uint64_t planned, std::uint64_t real) {
  return std::abs(static_cast<double>(planned) - static_cast<double>(real)) <=
         kVerifyTolerance * static_cast<double>(real);
}

}  // namespace

Result<std::vector<DeviceEvents>> read_gpu_events(const std::vector<std::string>& files) {
  std::vector<DeviceEvents> devices;
  for (const std::string& file : files) {
    const auto reader = TraceReader::open(file);
    if (!reader) return reader.error();
    std::vector<DeviceEvents> of_file;
    std::vector<Event> batch;
    for (;;) {
      const auto more = (*reader)->next(batch);
      if (!more) return more.error();
      if (!*more) break;
      for (const Event& event : batch) {
        if (!is_of_allocator(event)) continue;
        auto known = std::ranges::find(of_file, event.device, &DeviceEvents::device);
        if (known == of_file.end()) known = of_file.insert(known, DeviceEvents{{}, event.device, {}});
        known->events.push_back(event);
      }
    }
    for (DeviceEvents& device : of_file) {
      device.rank = (*reader)->definitions().process.rank;
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

bool reaches(const std::vector<DeviceEvents>& real, const std::vector<DeviceEvents>& planned) {
  return std::ranges::all_of(planned, [&real](const DeviceEvents& device) {
    const DeviceEvents* const other = find(real, device);
    return other != nullptr && other->events.size() >= device.events.size();
  });
}

Verification verify(const std::vector<DeviceEvents>& planned, const std::vector<DeviceEvents>& real) {
  Verification verification;
  for (const DeviceEvents& plan : planned) {
    VerifiedDevice& device = verification.devices.emplace_back();
    device.rank = plan.rank;
    device.device = plan.device;
    device.event_count = plan.events.size();
    std::span<const Event> events;
    if (const DeviceEvents* const other = find(real, plan)) events = other->events;
    events = events.first(std::min(events.size(), plan.events.size()));
    device.planned = peaks_of(plan.events);
    device.real = peaks_of(events);
    device.difference = first_difference(plan.events, events);
    device.within_tolerance = events.size() == plan.events.size() &&
                              is_near(device.planned.allocated, device.real.allocated) &&
                              is_near(device.planned.reserved, device.real.reserved);
    verification.equal = verification.equal && !device.difference;
    verification.within_tolerance = verification.within_tolerance && device.within_tolerance;
  }
  return verification;
}

}  // namespace tidemark
