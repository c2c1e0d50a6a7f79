// In place of bus.cpp in a build without NATS's client: no connection can be opened.
#include "cluster/bus.h"

namespace tidemark {

struct Bus::Connection {};

Bus::Bus(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Bus::~Bus() = default;

Result<std::unique_ptr<Bus>> Bus::open(const BusOptions& /*options*/) {
  return Error{
      "this build has no client of NATS, and watches only the job on this machine: leave out --role (or build it where "
      "libnats-dev is installed)"};
}

Result<void> Bus::subscribe(const std::string& subject) {
  return Error{subject + ": there is no client of NATS"};
}
std::optional<BusMessage> Bus::next() {
  return std::nullopt;
}
bool Bus::publish(const std::string& /*subject*/, std::string_view /*bytes*/, const BusExtras& /*extras*/) {
  return false;
}
void Bus::flush(std::uint64_t /*patience_ms*/) {}
bool Bus::is_connected() const {
  return false;
}
std::string Bus::problem() const {
  return "there is no client of NATS";
}

}  // namespace tidemark
