#include "cluster/agent.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "cluster/job_key.h"

namespace tidemark {

std::string own_node_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? clean_name(name.data()) : "?";
}

AgentMessages::AgentMessages(const std::string& job, const std::string& node)
    : sender_(node, random_number()), identities_(own_job_numbers(), job) {}

bool AgentMessages::due() const {
  return std::chrono::steady_clock::now() >= next_;
}

std::uint64_t AgentMessages::elapsed_ns() const {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began_).count());
}

std::string AgentMessages::next(const MonitorEngine& engine) {
  const auto now = std::chrono::steady_clock::now();
  next_ += kEvery;
  if (next_ <= now) next_ = now + kEvery;
  MonitorSnapshot snapshot{engine.state(), engine.recorded()};
  NodeRanks found = identities_.find(snapshot);
  std::erase_if(snapshot.recorded,
                [&found](const RecordedProcess& recorded) { return found.strangers.contains(recorded.recording.pid); });
  if (!found.problem.empty()) snapshot.state.problems.push_back(std::move(found.problem));
  return sender_.next(snapshot, std::move(found.ranks), elapsed_ns());
}

std::string AgentMessages::leave() {
  return sender_.leave(elapsed_ns());
}

Agent::Agent(std::unique_ptr<Bus> bus, const std::string& job, const std::string& node)
    : bus_(std::move(bus)), messages_(job, node), subject_(state_subject(job, messages_.sender().node())) {}

Result<std::unique_ptr<Agent>> Agent::start(const BusOptions& server, const std::string& job, const std::string& node) {
  auto bus = Bus::open(server);
  if (!bus) return bus.error();
  if (auto subscribed = (*bus)->subscribe(ask_subject(job, clean_name(node))); !subscribed) return subscribed.error();
  return std::unique_ptr<Agent>(new Agent(std::move(bus).value(), job, node));
}

Agent::~Agent() {
  constexpr std::uint64_t kPatienceMs = 500;
  if (bus_->publish(subject_, messages_.leave())) bus_->flush(kPatienceMs);
}

void Agent::update(const MonitorEngine& engine) {
  while (bus_->next()) messages_.send_full_next();
  // Without a device, a state says nothing yet.
  if (!messages_.due() || !engine.state().devices_known) return;
  if (!bus_->publish(subject_, messages_.next(engine))) messages_.send_full_next();
}

}  // namespace tidemark
