#include "trace/sample_reader.h"

#include <utility>

namespace tidemark {

Result<SampleReader> SampleReader::open(const std::string& path) {
  auto stream = open_byte_stream(path);
  if (!stream) return stream.error();
  auto frames = FrameReader::open(std::move(*stream));
  if (!frames) return frames.error();
  return SampleReader(std::move(*frames));
}

Result<bool> SampleReader::next(std::vector<SampleRecord>& batch) {
  batch.clear();
  Frame frame;
  while (batch.empty()) {
    auto found = frames_->next(frame, format::FrameType::samples);
    if (!found || !*found) return found;
    if (frame.payload.empty()) continue;
    const auto decoded = decoder_.decode(frame.payload, frame.stored_length,
                                         [&](const SampleRecord& record) { batch.push_back(record); });
    if (!decoded) frames_->reject(frame, decoded.error().message);
  }
  return true;
}

}  // namespace tidemark
