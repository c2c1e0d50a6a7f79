#include "collect/recorder/session/dump.h"

#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include "collect/recorder/session/output_files.h"
#include "trace/segment_joiner.h"

namespace tidemark {
namespace {

Result<DumpedFile> write_window(const KeptWindow& window, OutputFiles& outputs) {
  auto file = outputs.open_next(window.process);
  if (!file) return file.error();
  const auto joined = join_segments(window.files, std::move(file->sink));
  if (!joined) return joined.error();
  DumpedFile dumped{file->path, window.process.pid, joined->event_count, joined->oom_count, joined->bytes, 0};
  dumped.duration_ns = joined->end_ns - window.files.front()->begin_ns;
  return dumped;
}

void write_all(Dump& dump, const std::vector<KeptWindow>& windows, const std::string& output, bool overwrite,
               const std::string& folder) {
  OutputFiles outputs(output, overwrite);
  for (const KeptWindow& window : windows) {
    if (window.files.empty()) continue;
    auto dumped = [&]() -> Result<DumpedFile> {
      try {
        return write_window(window, outputs);
      } catch (const std::exception& error) {
        return Error{error.what()};
      }
    }();
    if (dumped) {
      dump.files.push_back(std::move(*dumped));
      continue;
    }
    dump.errors.push_back(dumped.error().message);
    dump.left_in = folder;
    for (const auto& segment : window.files) segment->leave();
  }
}

}  // namespace

void DumpWriter::start(Dump dump, std::vector<KeptWindow> windows, std::string output, bool overwrite,
                       std::string folder, std::function<std::vector<std::string>(const Dump&)> describe) {
  wait();
  ready_ = false;
  dump_ = std::move(dump);
  auto write = [this, windows = std::move(windows), output = std::move(output), overwrite, folder = std::move(folder),
                describe = std::move(describe)]() mutable {
    write_all(*dump_, windows, output, overwrite, folder);
    windows.clear();  // deletes segments that no window uses any more
    try {
      if (describe) dump_->verdict = describe(*dump_);
    } catch (const std::exception& error) {
      dump_->errors.emplace_back(error.what());
    }
    ready_ = true;
  };
  // Shared with the thread: if it cannot be started, the data to write must not be lost.
  const auto work = std::make_shared<decltype(write)>(std::move(write));
  try {
    thread_ = std::thread([work] { (*work)(); });
  } catch (const std::system_error&) {
    (*work)();
  }
}

std::optional<Dump> DumpWriter::take() {
  if (busy()) return std::nullopt;
  wait();
  return std::exchange(dump_, std::nullopt);
}

void DumpWriter::wait() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace tidemark
