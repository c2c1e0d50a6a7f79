#include "trace/reader.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace tidemark {

Result<std::unique_ptr<TraceReader>> TraceReader::open(std::unique_ptr<ByteStream> stream, FileEnd end) {
  auto frames = FrameReader::open(std::move(stream), end);
  if (!frames.ok()) return frames.error();
  return std::unique_ptr<TraceReader>(new TraceReader(std::move(frames).value()));
}

Result<std::unique_ptr<TraceReader>> TraceReader::open(const std::string& path) {
  auto stream = open_byte_stream(path);
  if (!stream.ok()) return stream.error();
  return open(std::move(stream).value(), FileEnd::torn);
}

Result<std::unique_ptr<TraceReader>> TraceReader::from_memory(std::span<const std::byte> bytes, std::string name) {
  return open(make_memory_stream(bytes, std::move(name)), FileEnd::torn);
}

Result<std::unique_ptr<TraceReader>> TraceReader::follow(std::unique_ptr<ByteStream> stream) {
  return open(std::move(stream), FileEnd::growing);
}

void TraceReader::forget_marks_before(std::uint64_t time_ns) {
  std::erase_if(definitions_.marks, [time_ns](const Mark& mark) { return mark.time_ns < time_ns; });
}

Result<bool> TraceReader::next_frame(Frame& frame, std::vector<Event>& batch, const RecordObserver& observe) {
  batch.clear();
  if (finished_) return false;
  Result<bool> found = frames_->next(frame);
  if (!found.ok()) return found;
  if (!*found) {
    if (!frames_->waits()) finish();
    return false;
  }
  if (!frame.known) {
    ++unknown_frames_;
    return true;
  }
  const Result<void> decoded = decode(frame, batch, observe);
  if (decoded.ok()) return true;
  frames_->reject(frame, decoded.error().message);
  finish();
  return false;
}

Result<void> TraceReader::decode(const Frame& frame, std::vector<Event>& batch, const RecordObserver& observe) {
  switch (static_cast<format::FrameType>(frame.type)) {
    case format::FrameType::definitions:
      return definition_decoder_.decode(frame.payload, frame.stored_length, definitions_, observe);
    case format::FrameType::events:
      return event_decoder_.decode(frame.payload, definitions_, batch);
    case format::FrameType::samples:
      return sample_decoder_.decode(frame.payload, frame.stored_length, observe_sample_);
  }
  return {};
}

Result<bool> TraceReader::next(std::vector<Event>& batch) {
  Frame frame;
  while (true) {
    Result<bool> found = next_frame(frame, batch);
    if (!found.ok() || !*found || !batch.empty()) return found;
  }
}

/// What is missing becomes part of the definitions, where every report shows it: one entry for each kind, text and
/// limit.
void TraceReader::finish() {
  finished_ = true;
  std::vector<Loss> found = std::move(definitions_.losses);
  const auto unknown = [&](Loss::Kind kind, std::uint64_t count) {
    if (count != 0) found.push_back({kind, count});
  };
  unknown(Loss::Kind::unknown_frames, unknown_frames_);
  unknown(Loss::Kind::unknown_definitions, definition_decoder_.unknown_records());
  unknown(Loss::Kind::unknown_samples, sample_decoder_.unknown_records());
  if (const auto& damage = frames_->damage()) found.push_back({Loss::Kind::torn_tail, damage->bytes, damage->text});

  definitions_.losses.clear();
  std::map<std::tuple<Loss::Kind, std::string, std::optional<std::uint64_t>>, std::size_t> index;
  for (Loss& loss : found) {
    const auto [entry, is_new] = index.try_emplace({loss.kind, loss.text, loss.limit}, definitions_.losses.size());
    if (is_new) {
      definitions_.losses.push_back(std::move(loss));
    } else {
      definitions_.losses[entry->second].count += loss.count;
    }
  }
}

}  // namespace tidemark
