#include "simulate/request_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace tidemark {
namespace {

enum : std::int64_t {
  kFree = -1,
  kFailed = -2,
  kEmptyCache = -3,
  kDevice = -4,
  kStream = -5,
  kPool = -6,
  kMoment = -7,
  kPoolReleased = -8
};

std::int64_t size_of(const Request& request) {
  return static_cast<std::int64_t>(std::min(request.size, kMaxRequestBytes));
}

// Calls put(operand, second) for each pair that a request becomes, and keeps the device, stream and pool that were set.
class Pairs {
 public:
  explicit Pairs(const Store& store) : store_(store) {}

  template <typename Put>
  void add(const Request& request, const Put& put) {
    using Kind = Request::Kind;
    if (request.kind == Kind::moment) return put(std::int64_t{request.device}, kMoment);
    if (request.kind == Kind::free) return put(std::int64_t{request.slot}, kFree);
    set(device_, request.device, kDevice, put);
    if (request.kind == Kind::pool_released) return put(std::int64_t{request.pool}, kPoolReleased);
    if (request.kind == Kind::empty_cache) return put(std::int64_t{0}, kEmptyCache);
    set(stream_, stream_of(request), kStream, put);
    set(pool_, request.pool, kPool, put);
    if (request.kind == Kind::failed) return put(size_of(request), kFailed);
    put(std::int64_t{request.slot}, size_of(request));
  }

 private:
  // Only told apart: no stream is created.
  [[nodiscard]] std::int64_t stream_of(const Request& request) const {
    const bool is_default = request.stream >= store_.streams.size() || store_.streams[request.stream] == 0;
    return is_default ? 0 : std::int64_t{request.stream} + 1;
  }
  template <typename Put>
  static void set(std::int64_t& current, std::int64_t wanted, std::int64_t operation, const Put& put) {
    if (current != wanted) put(wanted, operation);
    current = wanted;
  }

  const Store& store_;
  std::int64_t device_ = 0;
  std::int64_t stream_ = 0;
  std::int64_t pool_ = 0;
};

void write_number(std::ofstream& file, std::uint64_t number) {
  std::array<char, 8> bytes{};
  for (std::size_t index = 0; index < bytes.size(); ++index) bytes[index] = static_cast<char>(number >> (8 * index));
  file.write(bytes.data(), bytes.size());
}

}  // namespace

Result<void> write_request_file(const Store& store, const Requests& requests, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file.write("TMREQS1\n", 8);
  write_number(file, requests.slots);
  Pairs pairs(store);
  visit_requests(store, requests, [&](const Request& request) {
    pairs.add(request, [&](std::int64_t operand, std::int64_t second) {
      write_number(file, static_cast<std::uint64_t>(operand));
      write_number(file, static_cast<std::uint64_t>(second));
    });
    return file.good();
  });
  file.close();
  if (file) return {};
  return Error{fmt::format("{}: cannot be written: {}; set TMPDIR to a folder with room", path, std::strerror(errno))};
}

std::optional<std::uint64_t> time_of_pair(const Store& store, const Requests& requests, std::uint64_t pair) {
  std::optional<std::uint64_t> found;
  std::uint64_t next = 0;
  Pairs pairs(store);
  visit_requests(store, requests, [&](const Request& request) {
    pairs.add(request, [&](std::int64_t, std::int64_t) {
      if (next++ == pair) found = request.time_ns;
    });
    return !found;
  });
  return found;
}

}  // namespace tidemark
