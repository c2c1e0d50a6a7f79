#include "cluster/agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

#include "cluster/job_key.h"

namespace tidemark {

std::string own_node_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? clean_name(name.data()) : "?";
}

AgentMessages::AgentMessages(const std::string& job, const std::string& node)
    : sender_(node, random_number()),
      identities_(own_job_numbers(), job),
      watch_(sender_.node()),
      outbox_(sender_.instance()),
      commands_(sender_.node()) {}

void AgentMessages::take(const CommandOrder& order, MonitorEngine& engine) {
  commands_.take(order, engine, ranks_, NodeCommands::Clock::now());
}

void AgentMessages::look(MonitorEngine& engine) {
  commands_.update(NodeCommands::Clock::now());
  if (looked_ns_ == engine.state().now_ns) return;
  looked_ns_ = engine.state().now_ns;
  watch_.take_events(engine.events(), engine.state());
  commands_.take_events(engine.events());
  if (std::chrono::steady_clock::now() >= next_leaks_) {
    next_leaks_ = std::chrono::steady_clock::now() + kLeaksEvery;
    const LeakReport report = engine.leak();
    watch_.take_events(engine.events(), engine.state());  // it has assessed all risks
    watch_.take_growths(report);
  }
  for (JobEvent& event : watch_.take()) outbox_.add(std::move(event));
}

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
  watch_.take_ranks(snapshot, found);
  ranks_ = found.ranks;
  if (outbox_.dropped() > 0) {
    snapshot.state.problems.push_back(
        fmt::format("{} events are lost: they could not be sent for too long", outbox_.dropped()));
  }
  if (!found.problem.empty()) snapshot.state.problems.push_back(std::move(found.problem));
  return sender_.next(snapshot, std::move(found.ranks), elapsed_ns());
}

std::string AgentMessages::leave() {
  return sender_.leave(elapsed_ns());
}

Agent::Agent(std::unique_ptr<Bus> bus, const std::string& job, const std::string& node)
    : bus_(std::move(bus)), messages_(job, node), job_(job), subject_(state_subject(job, messages_.sender().node())) {}

Result<std::unique_ptr<Agent>> Agent::start(const BusOptions& server, const std::string& job, const std::string& node,
                                            const std::string& folder) {
  auto bus = Bus::open(server);
  if (!bus) return bus.error();
  const std::string name = clean_name(node);
  for (const std::string& subject :
       {ask_subject(job, name), stored_subject(job, name, "*"), command_subject(job, name)}) {
    if (auto subscribed = (*bus)->subscribe(subject); !subscribed) return subscribed.error();
  }
  std::unique_ptr<Agent> agent(new Agent(std::move(bus).value(), job, node));
  if (!folder.empty()) static_cast<void>(agent->messages_.events().keep_in(folder + "/unsent-" + subject_token(name)));
  return agent;
}

Agent::~Agent() {
  constexpr std::uint64_t kPatienceMs = 500;
  if (bus_->publish(subject_, messages_.leave())) bus_->flush(kPatienceMs);
}

void Agent::receive(MonitorEngine& engine) {
  const std::string asked = ask_subject(job_, messages_.sender().node());
  const std::string commanded = command_subject(job_, messages_.sender().node());
  while (const auto message = bus_->next()) {
    if (message->subject == asked) {
      messages_.send_full_next();
      continue;
    }
    if (message->subject == commanded) {
      if (const auto order = decode_command_order(message->bytes)) messages_.take(*order, engine);
      continue;
    }
    const std::string_view subject = message->subject;
    messages_.events().take_answer(subject.substr(subject.rfind('.') + 1), message->bytes);
  }
}

void Agent::send_events() {
  const std::string& node = messages_.sender().node();
  const auto now = EventOutbox::Clock::now();
  while (bus_->is_connected()) {
    const auto event = messages_.events().next(now);
    if (!event) return;
    static_cast<void>(bus_->publish(event_subject(job_, node), encode(*event),
                                    {stored_subject(job_, node, event->id()), event->id()}));
  }
}

void Agent::update(MonitorEngine& engine) {
  receive(engine);
  messages_.look(engine);
  send_events();
  for (const CommandAnswer& answer : messages_.take_answers()) {
    static_cast<void>(bus_->publish(acknowledged_subject(job_, messages_.sender().node()), encode(answer)));
  }
  // Without a device, a state says nothing yet.
  if (!messages_.due() || !engine.state().devices_known) return;
  if (!bus_->publish(subject_, messages_.next(engine))) messages_.send_full_next();
}

}  // namespace tidemark
