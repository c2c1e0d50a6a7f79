// Memory given out by the stand-in for libcuda: the truth for comparison with a recording.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fakes {

/// The current call of the driver on this thread.
struct Call {
  std::uint32_t number = 0;  ///< in the process
  const char* function = nullptr;
  const void* caller = nullptr;  ///< an address in the code that called it
};
extern thread_local Call current_call;

/// Bytes by account, named like the devices of a recording: cuda-driver:0, cuda-managed:0, cuda-host. Each change is a
/// line of the file $FAKES_CUDA_LOG, if it is set:
///   {"pid", "tid", "call": number, "function", "caller": "libnccl.so.2", "account", "change": bytes}
/// Lines are written whole, and processes share the file. Not thread-safe.
class Books {
 public:
  void change(const std::string& account, std::int64_t bytes);
  [[nodiscard]] std::uint64_t now(const std::string& account) const;

 private:
  std::map<std::string, std::uint64_t> now_;
};

/// Appends a line to the file $FAKES_CUDA_LOG.
void log_line(const std::string& line);

}  // namespace fakes
