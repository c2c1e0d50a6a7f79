#include "trace/recording_reader.h"

#include <utility>

namespace tidemark {

Result<std::unique_ptr<RecordingReader>> RecordingReader::open(std::unique_ptr<ByteSource> source) {
  auto frames = FrameReader::open(std::move(source));
  if (!frames.ok()) return frames.error();
  return std::unique_ptr<RecordingReader>(new RecordingReader(std::move(frames).value()));
}

Result<bool> RecordingReader::next_frame(Frame& frame, std::vector<Event>& batch) {
  batch.clear();
  if (finished_) return false;
  const Result<bool> found = frames_->next(frame);
  if (!found.ok()) return found;
  if (!*found) {
    finish();
    return false;
  }
  if (!frame.known) {
    ++unknown_frames_;
    return true;
  }
  const Result<void> decoded = frame.type == static_cast<std::uint8_t>(format::FrameType::events)
                                   ? event_decoder_.decode(frame.payload, definitions_, batch)
                                   : definition_decoder_.decode(frame.payload, definitions_);
  if (decoded.ok()) return true;
  frames_->reject(frame, decoded.error().message);
  finish();
  return false;
}

Result<bool> RecordingReader::next(std::vector<Event>& batch) {
  Frame frame;
  while (true) {
    const Result<bool> found = next_frame(frame, batch);
    if (!found.ok() || !*found || !batch.empty()) return found;
  }
}

/// What is missing becomes part of the definitions, where every report shows it.
void RecordingReader::finish() {
  finished_ = true;
  if (unknown_frames_ != 0) {
    definition_decoder_.add_loss({Loss::Kind::unknown_record, unknown_frames_, "frames of an unknown type or version"},
                                 definitions_);
  }
  if (definition_decoder_.unknown_records() != 0) {
    definition_decoder_.add_loss(
        {Loss::Kind::unknown_record, definition_decoder_.unknown_records(), "definitions of an unknown kind"},
        definitions_);
  }
  if (const auto& damage = frames_->damage()) {
    definition_decoder_.add_loss({Loss::Kind::torn_tail, damage->bytes, damage->text}, definitions_);
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
