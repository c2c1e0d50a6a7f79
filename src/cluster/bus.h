// A connection to a NATS server. The only part that knows its client library, nats.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tidemark {

struct BusOptions {
  std::string url;               ///< "nats://host:29500", "tls://host:4222"
  std::string name;              ///< of the client, shown by the server
  std::string password = {};     ///< a token; empty: none
  std::string certificate = {};  ///< PEM that the server has to have, with the name kServerName; empty: as the system
                                 ///< trusts
  std::string credentials = {};  ///< a file with a JWT and a key, as `nsc` makes it; empty: none
};

struct BusMessage {
  std::string subject;
  std::string bytes;
  std::string reply;  ///< where an answer goes; empty: none is expected
};

/// What a message may have besides its bytes.
struct BusExtras {
  std::string reply = {};
  std::string id = {};  ///< a stream that has a message of this number already does not store it again
};

/// Connects in the background, and again whenever the connection is lost. Used by one thread at a time. Nothing waits
/// for the network, except open(), for at most a few seconds.
class Bus {
 public:
  /// Received messages that were not taken yet; further ones are dropped.
  static constexpr std::size_t kMaxPending = 65'536;
  static constexpr std::size_t kMaxPendingBytes = std::size_t{256} << 20;

  /// Fails for options that cannot be used. A server that is not there is no error.
  static Result<std::unique_ptr<Bus>> open(const BusOptions& options);
  ~Bus();
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  /// From now on, next() returns messages of this subject, in which a part may be '*'. Messages of one subject come in
  /// their order; of several, each in turn.
  Result<void> subscribe(const std::string& subject);
  /// The next message; std::nullopt: none now.
  std::optional<BusMessage> next();
  /// False if there is no connection now, or the message is too large: it is dropped.
  bool publish(const std::string& subject, std::string_view bytes, const BusExtras& extras = {});
  /// Waits until what was published has left, for at most that long.
  void flush(std::uint64_t patience_ms);

  [[nodiscard]] bool is_connected() const;
  /// Why there is no connection, as a clause; empty while there is one.
  [[nodiscard]] std::string problem() const;

 private:
  struct Connection;
  explicit Bus(std::unique_ptr<Connection> connection);
  void reopen_closed();

  std::unique_ptr<Connection> connection_;
};

}  // namespace tidemark
