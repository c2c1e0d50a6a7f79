#include "trace/recording_reader.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace tidemark {

Result<std::unique_ptr<RecordingReader>> RecordingReader::open(std::unique_ptr<ByteSource> source) {
  auto frames = FrameReader::open(std::move(source));
  if (!frames.ok()) return frames.error();
  return std::unique_ptr<RecordingReader>(new RecordingReader(std::move(frames).value()));
}

Result<bool> RecordingReader::next_frame(Frame& frame, std::vector<Event>& batch, const RecordObserver& observe) {
  batch.clear();
  if (finished_) return false;
  Result<bool> found = frames_->next(frame);
  if (!found.ok()) return found;
  if (!*found) {
    finish();
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

Result<void> RecordingReader::decode(const Frame& frame, std::vector<Event>& batch, const RecordObserver& observe) {
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

Result<bool> RecordingReader::next(std::vector<Event>& batch) {
  Frame frame;
  while (true) {
    Result<bool> found = next_frame(frame, batch);
    if (!found.ok() || !*found || !batch.empty()) return found;
  }
}

/// What is missing becomes part of the definitions, where every report shows it: one entry for each kind, text and
/// limit.
void RecordingReader::finish() {
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

Result<std::unique_ptr<TraceReader>> TraceReader::open(const std::string& path) {
  auto source = open_file_source(path);
  if (!source.ok()) return source.error();
  auto reader = RecordingReader::open(std::move(source).value());
  if (!reader.ok()) return reader.error();
  return std::unique_ptr<TraceReader>(std::move(reader).value());
}

Result<std::unique_ptr<TraceReader>> TraceReader::from_memory(std::span<const std::byte> bytes, std::string name) {
  auto reader = RecordingReader::open(make_memory_source(bytes, std::move(name)));
  if (!reader.ok()) return reader.error();
  return std::unique_ptr<TraceReader>(std::move(reader).value());
}

}  // namespace tidemark
