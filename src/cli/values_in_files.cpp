#include "cli/values_in_files.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>

#include "analyze/common/moment.h"
#include "cli/reading.h"
#include "import/open.h"
#include "query/words/printable.h"
#include "trace/reader.h"

namespace tidemark::cli {
namespace {

constexpr std::size_t kMaxValues = 200;
constexpr std::size_t kLongestValue = 200;  // bytes

class ValuesInFiles {
 public:
  ValuesInFiles(FileValues which, const std::function<void(const std::string&)>& take) : which_(which), take_(take) {}

  void read(const std::string& path) {
    if (!check_recording_path(path)) return;  // a pipe would never end
    marks_ = 0;
    if (auto recording = TraceReader::open(path)) {
      read_recording(**recording);
    } else if (const auto overview = open_overview(path)) {
      for (const DeviceSummary& device : overview->devices) add_device(device.device);
      add_marks(overview->definitions);
    }
  }

 private:
  // Frame by frame, so that the first names of a large recording come at once.
  void read_recording(TraceReader& recording) {
    std::vector<Event> events;
    std::vector<Device> devices;
    bool more = true;
    while (more) {
      const Result<bool> next = recording.next(events);
      more = next.ok() && *next;
      if (which_ == FileValues::marks) add_marks(recording.definitions());
      for (std::size_t event = 0; more && event < events.size(); ++event) {
        if (std::find(devices.begin(), devices.end(), events[event].device) != devices.end()) continue;
        devices.push_back(events[event].device);
        add_device(devices.back());
      }
    }
  }
  void add_device(Device device) {
    if (which_ == FileValues::devices) add(to_string(device));
  }
  void add_marks(const Definitions& definitions) {
    for (; which_ == FileValues::marks && marks_ < definitions.marks.size(); ++marks_) {
      const Mark& mark = definitions.marks[marks_];
      const bool named = mark.name.valid() && mark.name.value < definitions.strings.size();
      if (mark.kind == Mark::Kind::range_end || !named) continue;
      const std::string& name = definitions.strings[mark.name.value];
      if (!name.empty() && name.size() <= kLongestValue) add(moment_of_mark(name));
    }
  }
  void add(const std::string& value) {
    if (seen_.size() == kMaxValues || printable(value) != value || !seen_.insert(value).second) return;
    take_(value);
  }

  FileValues which_;
  const std::function<void(const std::string&)>& take_;
  std::unordered_set<std::string> seen_;
  std::size_t marks_ = 0;  // of the file being read, that were looked at
};

}  // namespace

void find_values_in_files(const std::vector<std::string>& files, FileValues which,
                          const std::function<void(const std::string&)>& take) {
  ValuesInFiles values(which, take);
  for (const std::string& path : files) values.read(path);
}

}  // namespace tidemark::cli
