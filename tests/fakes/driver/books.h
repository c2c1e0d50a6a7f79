// What memory the stand-in for libcuda has given out: the truth that a recording is compared with.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fakes {

/// The call of the driver that is under way on this thread.
struct Call {
  std::uint32_t number = 0;  ///< in the process
  const char* function = nullptr;
  const void* caller = nullptr;  ///< an address in the code that called it
};
extern thread_local Call current_call;

/// Bytes by account, named as the devices of a recording are: cuda-driver:0, cuda-managed:0, cuda-host. Each change is
/// a line of the file that FAKES_CUDA_LOG names, if there is one:
///   {"pid", "tid", "call": number, "function", "caller": "libnccl.so.2", "account", "change": bytes}
/// Lines are whole, and processes share the file. Not thread-safe.
class Books {
 public:
  void change(const std::string& account, std::int64_t bytes);
  [[nodiscard]] std::uint64_t now(const std::string& account) const;

 private:
  std::map<std::string, std::uint64_t> now_;
};

/// Appends a line to the file that FAKES_CUDA_LOG names.
void log_line(const std::string& line);

}  // namespace fakes
