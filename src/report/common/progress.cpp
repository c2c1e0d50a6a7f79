#include "report/common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include "base/standard_streams.h"
#include "query/words/printable.h"

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;

class Line {
 public:
  Line(const char* doing, std::string name) : doing_(doing), name_(std::move(name)) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    if (shown_) write_stderr({"\r\x1b[K"});
  }

  void show(std::uint64_t done, std::uint64_t all) {
    const Clock::time_point now = Clock::now();
    if (now < next_ || all == 0) return;
    next_ = now + std::chrono::milliseconds(200);
    shown_ = true;
    write_stderr({fmt::format("\r{} {}: {}%\x1b[K", doing_, name_, done * 100 / all)});
  }

 private:
  const char* doing_;
  std::string name_;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
  bool shown_ = false;
};

}  // namespace

Progress make_progress(const std::string& path, const char* doing) {
  if (isatty(STDERR_FILENO) == 0) return {};
  auto line = std::make_shared<Line>(doing, fit(printable(path), 50));
  return [line](std::uint64_t done, std::uint64_t all) { line->show(done, all); };
}

}  // namespace tidemark
