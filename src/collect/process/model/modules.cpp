#include "collect/process/model/modules.h"

#include "collect/process/definition_writer.h"
#include "collect/process/event_writer.h"
#include "collect/process/model/model_script.h"
#include "collect/process/python/address_set.h"

namespace tidemark::process {
namespace {

constexpr std::uint64_t kUnboundedNs = 40'000'000;
constexpr std::uint64_t kShare = 100;

constinit AddressSet met;
constinit std::atomic<bool> names_wanted{false};
constinit std::atomic<bool> scheduled{false};
constinit std::atomic<std::uint64_t> first_ns{0};
constinit std::atomic<std::uint64_t> spent_ns{0};
constinit std::atomic<std::uint64_t> began_ns{0};

std::uint64_t now_ns() noexcept {
  return ring::monotonic_ns();
}

}  // namespace

bool names_are_due() noexcept {
  if (!names_wanted.load(std::memory_order_relaxed)) return false;
  std::uint64_t began = 0;
  const std::uint64_t now = now_ns();
  if (first_ns.compare_exchange_strong(began, now)) began = now;
  return spent_ns.load(std::memory_order_relaxed) <= kUnboundedNs + (now - began) / kShare;
}

void meet_module(std::uintptr_t module) noexcept {
  if (met.insert(module)) names_wanted.store(true, std::memory_order_relaxed);
  if (!names_are_due() || scheduled.exchange(true)) return;
  if (!schedule_asking()) scheduled.store(false);
}

void modules_named(const std::uint64_t* modules, std::size_t count) noexcept {
  for (std::size_t index = 0; index < count; ++index) met.insert(modules[index]);
}

void module_died(std::uintptr_t module) noexcept {
  const std::uint64_t death = module_deaths.load(std::memory_order_relaxed) + 1;
  if (ThreadState* thread = defining_thread(); thread != nullptr) {
    const detail::BusyLane busy(thread->writer.lane());
    if (busy.entered()) {
      DefinitionWriter definition(&thread->writer, ring::DefinitionKind::module_death);
      definition.u64(module);
      definition.u64(death);
      if (!definition.finish()) event_dropped(thread);
    }
  }
  met.erase(module);
  module_deaths.store(death, std::memory_order_release);
}

void asking_began() noexcept {
  names_wanted.store(false, std::memory_order_relaxed);
  began_ns.store(now_ns(), std::memory_order_relaxed);
}

void asking_ended(bool again) noexcept {
  if (again) names_wanted.store(true, std::memory_order_relaxed);
  spent_ns.fetch_add(now_ns() - began_ns.load(std::memory_order_relaxed), std::memory_order_relaxed);
  scheduled.store(false);
}

void forget_modules() noexcept {
  if (first_ns.exchange(0) != 0) met.clear();  // it is large, and empty where no module was met
  names_wanted.store(false, std::memory_order_relaxed);
  scheduled.store(false);
  spent_ns.store(0, std::memory_order_relaxed);
  module_deaths.store(0, std::memory_order_release);
}

}  // namespace tidemark::process
