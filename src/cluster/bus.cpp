#include "cluster/bus.h"

#include <fmt/format.h>
#include <nats/nats.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cluster/job_key.h"

namespace tidemark {
namespace {

constexpr std::int64_t kConnectMs = 3'000;
constexpr std::int64_t kReconnectMs = 1'000;
constexpr std::int64_t kJitterMs = 500;  // agents do not come back all at once
// A partition is noticed after these: the kernel alone takes minutes.
constexpr std::int64_t kPingMs = 4'000;
constexpr int kMaxPings = 2;
constexpr std::int64_t kWriteMs = 2'000;
constexpr std::chrono::seconds kReopen{2};
constexpr std::chrono::seconds kPatienceToClose{2};

Error error_of(natsStatus status, std::string_view what) {
  natsStatus latest = NATS_OK;
  const char* details = ::nats_GetLastError(&latest);
  const bool has_details = latest == status && details != nullptr && *details != '\0';
  return Error{fmt::format("{}: {}", what, has_details ? details : ::natsStatus_GetText(status))};
}

}  // namespace

// Callbacks run on threads of the library.
struct Bus::Connection {
  BusOptions options;
  std::unique_ptr<natsOptions, void (*)(natsOptions*)> settings{nullptr, ::natsOptions_Destroy};
  natsConnection* connection = nullptr;
  std::vector<natsSubscription*> subscriptions;
  std::vector<std::string> subjects;
  std::size_t turn = 0;  // the subscription whose message comes next
  std::chrono::steady_clock::time_point opened_at;
  mutable std::mutex mutex;
  std::condition_variable closing;
  std::string reason;   // guarded by the mutex, as the next: why there is no connection
  bool closed = false;  // the last callback of the connection has been called

  void set_reason(std::string text) {
    const std::lock_guard lock(mutex);
    reason = std::move(text);
  }

  static void on_disconnected(natsConnection* connection, void* closure) {
    const char* text = nullptr;
    static_cast<void>(::natsConnection_GetLastError(connection, &text));
    static_cast<Connection*>(closure)->set_reason(text == nullptr ? "" : text);
  }
  static void on_closed(natsConnection* connection, void* closure) {
    on_disconnected(connection, closure);
    auto& own = *static_cast<Connection*>(closure);
    const std::lock_guard lock(own.mutex);
    own.closed = true;
    own.closing.notify_all();
  }
  static void on_connected(natsConnection* /*connection*/, void* closure) {
    static_cast<Connection*>(closure)->set_reason("");
  }

  natsStatus prepare() {
    natsOptions* made = nullptr;
    natsStatus status = ::natsOptions_Create(&made);
    settings.reset(made);
    const auto then = [&status](auto function, auto... arguments) {
      if (status == NATS_OK) status = function(arguments...);
    };
    then(::natsOptions_SetURL, made, options.url.c_str());
    then(::natsOptions_SetName, made, options.name.c_str());
    if (!options.password.empty()) then(::natsOptions_SetToken, made, options.password.c_str());
    if (!options.certificate.empty()) {
      then(::natsOptions_SetSecure, made, true);
      then(::natsOptions_SetCATrustedCertificates, made, options.certificate.c_str());
      then(::natsOptions_SetExpectedHostname, made, kServerName);
    } else if (options.url.starts_with("tls://")) {
      then(::natsOptions_SetSecure, made, true);
    }
    if (!options.credentials.empty()) {
      then(::natsOptions_SetUserCredentialsFromFiles, made, options.credentials.c_str(), nullptr);
    }
    then(::natsOptions_SetTimeout, made, kConnectMs);
    then(::natsOptions_SetAllowReconnect, made, true);
    then(::natsOptions_SetMaxReconnect, made, -1);
    then(::natsOptions_SetReconnectWait, made, kReconnectMs);
    then(::natsOptions_SetReconnectJitter, made, kJitterMs, kJitterMs);
    then(::natsOptions_SetReconnectBufSize, made, 1);  // states that could not be sent are outdated
    then(::natsOptions_SetPingInterval, made, kPingMs);
    then(::natsOptions_SetMaxPingsOut, made, kMaxPings);
    then(::natsOptions_SetWriteDeadline, made, kWriteMs);
    then(::natsOptions_SetSendAsap, made, false);
    then(::natsOptions_SetDisconnectedCB, made, on_disconnected, static_cast<void*>(this));
    then(::natsOptions_SetClosedCB, made, on_closed, static_cast<void*>(this));
    then(::natsOptions_SetReconnectedCB, made, on_connected, static_cast<void*>(this));
    then(::natsOptions_SetRetryOnFailedConnect, made, true, on_connected, static_cast<void*>(this));
    return status;
  }

  natsStatus connect() {
    opened_at = std::chrono::steady_clock::now();
    closed = false;  // there is no connection that could change it
    const natsStatus status = ::natsConnection_Connect(&connection, settings.get());
    if (status == NATS_NOT_YET_CONNECTED) {
      const char* text = nullptr;
      static_cast<void>(::natsConnection_GetLastError(connection, &text));
      set_reason(text == nullptr ? "" : text);
      return NATS_OK;
    }
    return status;
  }

  natsStatus subscribe(const std::string& subject) {
    if (connection == nullptr) return NATS_OK;  // when it is opened again
    natsSubscription* subscription = nullptr;
    natsStatus status = ::natsConnection_SubscribeSync(&subscription, connection, subject.c_str());
    if (status != NATS_OK) return status;
    subscriptions.push_back(subscription);
    return ::natsSubscription_SetPendingLimits(subscription, static_cast<int>(kMaxPending),
                                               static_cast<int>(kMaxPendingBytes));
  }

  /// False if the library may still call back.
  bool close() {
    for (natsSubscription* subscription : subscriptions) ::natsSubscription_Destroy(subscription);
    subscriptions.clear();
    if (connection == nullptr) return true;
    ::natsConnection_Close(connection);
    bool over = false;
    {
      std::unique_lock lock(mutex);
      over = closing.wait_for(lock, kPatienceToClose, [this] { return closed; });
    }
    ::natsConnection_Destroy(connection);
    connection = nullptr;
    return over;
  }
};

Bus::Bus(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

Bus::~Bus() {
  // What a callback may still use is kept: it is small.
  if (!connection_->close()) static_cast<void>(connection_.release());  // NOLINT(bugprone-unused-return-value)
}

Result<std::unique_ptr<Bus>> Bus::open(const BusOptions& options) {
  auto connection = std::make_unique<Connection>();
  connection->options = options;
  if (const natsStatus status = connection->prepare(); status != NATS_OK) return error_of(status, options.url);
  if (const natsStatus status = connection->connect(); status != NATS_OK) {
    // A refused password, for example: tried again, because the server may be restarted with another.
    connection->set_reason(error_of(status, "refused").message);
    connection->connection = nullptr;
  }
  return std::unique_ptr<Bus>(new Bus(std::move(connection)));
}

// The library gives up after two refusals.
void Bus::reopen_closed() {
  Connection& own = *connection_;
  if (own.connection != nullptr && !::natsConnection_IsClosed(own.connection)) return;
  if (std::chrono::steady_clock::now() - own.opened_at < kReopen) return;
  if (!own.close()) return;
  if (const natsStatus status = own.connect(); status != NATS_OK) {
    own.set_reason(error_of(status, "refused").message);
    return;
  }
  for (const std::string& subject : own.subjects) static_cast<void>(own.subscribe(subject));
}

Result<void> Bus::subscribe(const std::string& subject) {
  connection_->subjects.push_back(subject);
  const natsStatus status = connection_->subscribe(subject);
  return status == NATS_OK ? Result<void>() : error_of(status, subject);
}

std::optional<BusMessage> Bus::next() {
  reopen_closed();
  const std::vector<natsSubscription*>& subscriptions = connection_->subscriptions;
  for (std::size_t n = 0; n < subscriptions.size(); ++n) {
    natsMsg* message = nullptr;
    natsSubscription* subscription = subscriptions[connection_->turn++ % subscriptions.size()];
    if (::natsSubscription_NextMsg(&message, subscription, 0) != NATS_OK) continue;
    const char* reply = ::natsMsg_GetReply(message);
    BusMessage taken{
        ::natsMsg_GetSubject(message),
        std::string(::natsMsg_GetData(message), static_cast<std::size_t>(::natsMsg_GetDataLength(message))),
        reply == nullptr ? "" : reply};
    ::natsMsg_Destroy(message);
    return taken;
  }
  return std::nullopt;
}

bool Bus::publish(const std::string& subject, std::string_view bytes, const BusExtras& extras) {
  reopen_closed();
  if (!is_connected()) return false;
  natsMsg* message = nullptr;
  natsStatus status = ::natsMsg_Create(&message, subject.c_str(), extras.reply.empty() ? nullptr : extras.reply.c_str(),
                                       bytes.data(), static_cast<int>(bytes.size()));
  if (status == NATS_OK && !extras.id.empty()) {
    status = ::natsMsgHeader_Set(message, "Nats-Msg-Id", extras.id.c_str());
  }
  if (status == NATS_OK) status = ::natsConnection_PublishMsg(connection_->connection, message);
  ::natsMsg_Destroy(message);
  return status == NATS_OK;
}

void Bus::flush(std::uint64_t patience_ms) {
  if (is_connected()) {
    static_cast<void>(::natsConnection_FlushTimeout(connection_->connection, static_cast<std::int64_t>(patience_ms)));
  }
}

bool Bus::is_connected() const {
  return connection_->connection != nullptr &&
         ::natsConnection_Status(connection_->connection) == NATS_CONN_STATUS_CONNECTED;
}

std::string Bus::problem() const {
  if (is_connected()) return "";
  const std::lock_guard lock(connection_->mutex);
  return connection_->reason.empty() ? "there is no answer" : connection_->reason;
}

}  // namespace tidemark
