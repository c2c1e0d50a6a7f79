#include "trace/window_writer.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace tidemark {
namespace {

// Number of complete segments of a window, besides the one being written.
constexpr std::uint64_t kParts = 8;
constexpr std::size_t kMaxOpenRanges = 4096;

}  // namespace

SegmentFile::~SegmentFile() {
  if (!left_) ::unlink(path_.c_str());
}

Result<std::unique_ptr<WindowWriter>> WindowWriter::create(OpenSegment open, WindowLimits limits,
                                                           const ProcessInfo& process) {
  std::unique_ptr<WindowWriter> writer(new WindowWriter(std::move(open), limits, process));
  if (Result<void> begun = writer->begin_segment(0); !begun) return begun.error();
  return writer;
}

bool WindowWriter::is_due(std::uint64_t now_ns) const {
  if (segment_ == nullptr) return false;
  if (limits_.bytes != 0 && segment_->bytes_written() - begun_with_bytes_ >= limits_.bytes / kParts) return true;
  return limits_.time_ns != 0 && now_ns >= file_->begin_ns + limits_.time_ns / kParts;
}

Result<void> WindowWriter::next_segment(std::uint64_t now_ns) {
  if (segment_ == nullptr) return {};
  now_ns = std::max<std::uint64_t>(now_ns, 1);  // 0 is the beginning of all
  if (Result<void> ended = end_segment({now_ns, false}); !ended) return ended;
  drop_old(now_ns);
  return begin_segment(now_ns);
}

Result<void> WindowWriter::begin_segment(std::uint64_t now_ns) {
  std::string path;
  auto sink = open_(path);
  if (!sink) return sink.error();
  auto file = std::make_shared<SegmentFile>(path);
  auto writer = TraceWriter::create(std::move(*sink), process_);
  if (!writer) return writer.error();
  file->begin_ns = now_ns;
  file_ = std::move(file);
  segment_ = std::move(*writer);
  definitions_.begin_file(*segment_);
  for (const Loss& loss : losses_) segment_->loss(loss);
  for (const SampledDevice& device : devices_) segment_->sample(device);
  for (const Mark& mark : open_ranges_) write(mark);
  forget_dead_tensors();
  for (const auto& [key, tensor] : tensors_) write(tensor);
  if (now_ns > 0) {
    if (Result<void> written = write_lead_in(); !written) return written;
  }
  Result<void> flushed = segment_->flush();
  begun_with_bytes_ = segment_->bytes_written();
  return flushed;
}

Result<void> WindowWriter::write_lead_in() {
  Result<void> written;
  live_.lead_in(file_->begin_ns, [&](const Event& event) {
    if (!written) return;
    Event in_file = event;
    in_file.stack = definitions_.in_file(event.stack);
    in_file.thread = definitions_.in_file(event.thread);
    in_file.node = definitions_.in_file(event.node);
    written = segment_->event(in_file);
  });
  return written;
}

Result<void> WindowWriter::end_segment(const EndInfo& end) {
  Result<void> finished = segment_->finish(end);
  if (!finished) return finished;
  file_->bytes = segment_->bytes_written();
  file_->threads = definitions_.threads_in_file();
  file_->nn_modules = definitions_.nn_modules_in_file();
  complete_.push_back(std::move(file_));
  segment_ = nullptr;
  return {};
}

void WindowWriter::drop_old(std::uint64_t now_ns) {
  std::uint64_t bytes = 0;
  for (const auto& file : complete_) bytes += file->bytes;
  while (!complete_.empty()) {
    const std::uint64_t next_ns = complete_.size() > 1 ? complete_[1]->begin_ns : now_ns;
    bytes -= complete_.front()->bytes;
    const bool enough_time = limits_.time_ns != 0 && now_ns - std::min(now_ns, next_ns) >= limits_.time_ns;
    const bool enough_bytes = limits_.bytes != 0 && bytes >= limits_.bytes;
    if (!enough_time && !enough_bytes) return;
    complete_.pop_front();
  }
}

// A tensor with freed memory is no longer alive.
void WindowWriter::forget_dead_tensors() {
  if (tensors_.empty()) return;
  struct Range {
    Device device;
    std::uint64_t begin;
    std::uint64_t end;
  };
  const auto place = [](Device device, std::uint64_t address) {
    return std::tuple(static_cast<int>(device.type), static_cast<int>(device.index), address);
  };
  std::vector<Range> ranges;
  ranges.reserve(live_.count());
  live_.for_each([&](const Event& event) {
    ranges.push_back({event.device, event.address, event.address + event.size});
  });
  std::sort(ranges.begin(), ranges.end(), [&](const Range& left, const Range& right) {
    return place(left.device, left.begin) < place(right.device, right.begin);
  });
  std::erase_if(tensors_, [&](const auto& entry) {
    const ModelTensor& tensor = entry.second;
    const auto wanted = place(tensor.device, tensor.address);
    auto after = std::upper_bound(ranges.begin(), ranges.end(), wanted, [&](const auto& at, const Range& range) {
      return at < place(range.device, range.begin);
    });
    if (after == ranges.begin()) return true;
    --after;
    return !(after->device == tensor.device) || tensor.address >= after->end;
  });
}

void WindowWriter::leave() {
  for (const auto& file : complete_) file->leave();
  if (file_) file_->leave();
}

void WindowWriter::sweep() {
  live_.for_each([&](const Event& event) {
    definitions_.keep(event.stack);
    definitions_.keep(event.thread);
    definitions_.keep(event.node);
  });
  for (const Mark& mark : open_ranges_) {
    definitions_.keep(mark.name);
    definitions_.keep(mark.thread);
  }
  for (const auto& [key, tensor] : tensors_) {
    definitions_.keep(tensor.module);
    definitions_.keep(tensor.name);
    definitions_.keep(tensor.state);
    definitions_.keep(tensor.dtype);
  }
  definitions_.sweep();
}

void WindowWriter::write(const ModelTensor& tensor) {
  ModelTensor in_file = tensor;
  in_file.module = definitions_.in_file(tensor.module);
  in_file.name = definitions_.in_file(tensor.name);
  in_file.state = definitions_.in_file(tensor.state);
  in_file.dtype = definitions_.in_file(tensor.dtype);
  segment_->tensor(in_file);
}

void WindowWriter::tensor(const ModelTensor& tensor) {
  tensors_[{static_cast<int>(tensor.role), static_cast<int>(tensor.device.type), tensor.device.index, tensor.address,
            tensor.module.value, tensor.name.value, tensor.state.value}] = tensor;
  if (segment_) write(tensor);
}

void WindowWriter::process(const ProcessInfo& process) {
  process_ = process;
  if (segment_) segment_->process(process);
}

Result<void> WindowWriter::event(const Event& event) {
  if (!segment_) return {};
  live_.add(event);
  Event in_file = event;
  in_file.stack = definitions_.in_file(event.stack);
  in_file.thread = definitions_.in_file(event.thread);
  if (event.node.valid()) in_file.node = definitions_.in_file(event.node);
  return segment_->event(in_file);
}

void WindowWriter::write(const Mark& mark) {
  Mark in_file = mark;
  in_file.name = definitions_.in_file(mark.name);
  in_file.thread = definitions_.in_file(mark.thread);
  segment_->mark(in_file);
}

void WindowWriter::mark(const Mark& mark) {
  if (!segment_) return;
  if (mark.kind == Mark::Kind::range_begin) {
    if (open_ranges_.size() == kMaxOpenRanges) open_ranges_.erase(open_ranges_.begin());
    open_ranges_.push_back(mark);
  } else if (mark.kind == Mark::Kind::range_end) {
    const auto latest = std::find_if(open_ranges_.rbegin(), open_ranges_.rend(),
                                     [&](const Mark& begin) { return begin.name == mark.name; });
    if (latest != open_ranges_.rend()) open_ranges_.erase(std::next(latest).base());
  }
  write(mark);
}

void WindowWriter::sample(const SampleRecord& record) {
  if (!segment_) return;
  if (const auto* device = std::get_if<SampledDevice>(&record)) devices_.push_back(*device);
  segment_->sample(record);
}

void WindowWriter::loss(const Loss& loss) {
  const auto known = std::find_if(losses_.begin(), losses_.end(), [&](const Loss& other) {
    return other.kind == loss.kind && other.text == loss.text && other.limit == loss.limit;
  });
  if (known != losses_.end()) {
    known->count += loss.count;
  } else {
    losses_.push_back(loss);
  }
  if (segment_) segment_->loss(loss);
}

Result<void> WindowWriter::finish(const EndInfo& end) {
  Result<void> finished = segment_ ? end_segment(end) : Result<void>();
  if (finished) open_ = {};
  return finished;
}

Result<void> WindowWriter::finish_after_error(const EndInfo& end) {
  if (!segment_) return {};
  Result<void> finished = segment_->finish_after_error(end);
  file_->bytes = segment_->bytes_written();
  file_->threads = definitions_.threads_in_file();
  file_->nn_modules = definitions_.nn_modules_in_file();
  complete_.push_back(std::move(file_));
  segment_ = nullptr;
  open_ = {};
  return finished;
}

std::uint64_t WindowWriter::bytes_written() const {
  std::uint64_t bytes = segment_ ? segment_->bytes_written() : 0;
  for (const auto& file : complete_) bytes += file->bytes;
  return bytes;
}

}  // namespace tidemark
