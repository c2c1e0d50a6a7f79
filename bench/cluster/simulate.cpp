// Scripted agents of a job, for measuring a coordinator: N nodes with 8 GPUs and 8 recorded ranks each, which send
// their states once a second to the coordinator's server.
//
//   tidemark distributed --role master --state S &
//   cluster_simulate HOST:PORT S/key AGENTS SECONDS
//
// Prints how many messages and bytes were sent, and the share of a core that this took.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster/bus.h"
#include "cluster/job_key.h"
#include "cluster/protocol.h"
#include "cluster/state_sender.h"
#include "unit/monitor/training_machine.h"

namespace {

using namespace tidemark;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kGpus = 8;
constexpr std::size_t kAgentsOfConnection = 64;  // a connection has two threads

std::vector<RankIdentity> ranks_of(std::size_t agent, const MachineState& state) {
  std::vector<RankIdentity> ranks;
  for (std::size_t n = 0; n < state.processes.size(); ++n) {
    const auto local = static_cast<std::uint32_t>(n);
    ranks.push_back({state.processes[n].pid, static_cast<std::uint32_t>(agent * kGpus) + local, local, {}, ""});
  }
  return ranks;
}

int fail(const std::string& message) {
  std::fprintf(stderr, "cluster_simulate: %s\n", message.c_str());
  return 2;
}

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return fail("usage: cluster_simulate HOST:PORT KEY_FILE AGENTS SECONDS");
  const auto key = open_job_key(arguments[2]);
  if (!key) return fail(key.error().message);
  const auto certificate = server_certificate(*key);
  if (!certificate) return fail(certificate.error().message);
  const auto agents = static_cast<std::size_t>(std::strtoul(arguments[3], nullptr, 10));
  const int seconds = std::atoi(arguments[4]);

  std::vector<std::unique_ptr<Bus>> buses;
  std::vector<StateSender> senders;
  for (std::size_t n = 0; n < agents; ++n) {
    if (n % kAgentsOfConnection == 0) {
      auto bus = Bus::open(
          {std::string("nats://") + arguments[1], "simulated agents", key->password(), certificate->certificate});
      if (!bus) return fail(bus.error().message);
      buses.push_back(std::move(bus).value());
    }
    senders.emplace_back("node" + std::to_string(n), random_number());
    static_cast<void>(buses.back()->subscribe(ask_subject("default", senders.back().node())));
  }

  TrainingMachine machine(kGpus);
  for (int n = 0; n < 60; ++n) machine.pass_second();
  for (WatchedProcess& process : machine.snapshot().state.processes) process.on_host.emplace();
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t dropped = 0;
  const auto began = Clock::now();
  for (int second = 0; second < seconds; ++second) {
    machine.pass_second();
    for (std::size_t n = 0; n < agents; ++n) {
      Bus& bus = *buses[n / kAgentsOfConnection];
      while (const auto asked = bus.next()) {
        for (std::size_t other = n - n % kAgentsOfConnection; other < agents; ++other) {
          if (asked->subject == ask_subject("default", senders[other].node())) senders[other].send_full_next();
        }
      }
      // Spread over the second, as agents are that were started at different times.
      std::this_thread::sleep_until(began + std::chrono::seconds(second) + std::chrono::seconds(1) * n / agents);
      const auto elapsed = static_cast<std::uint64_t>((Clock::now() - began).count());
      const std::string message = senders[n].next(machine.snapshot(), ranks_of(n, machine.snapshot().state), elapsed);
      if (bus.publish(state_subject("default", senders[n].node()), message)) {
        ++messages;
        bytes += message.size();
      } else {
        ++dropped;
        senders[n].send_full_next();
      }
    }
  }
  for (const auto& bus : buses) bus->flush(2'000);
  const double spent = std::chrono::duration<double>(Clock::now() - began).count();
  std::printf(
      "%zu agents, %zu ranks: %llu messages in %.1f s (%llu not sent), %.1f MB/s, %.0f bytes each; %.0f%% of a core\n",
      agents, agents * kGpus, static_cast<unsigned long long>(messages), spent,
      static_cast<unsigned long long>(dropped), static_cast<double>(bytes) / spent / 1e6,
      messages == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(messages),
      processor_seconds() / spent * 100);
  return 0;
}
