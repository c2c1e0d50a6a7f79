#include "trace/reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "trace/running_totals.h"

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
  Result<bool> found = frames_->next(frame, [this](const Frame& header) { return is_wanted(header); });
  if (!found.ok()) return found;
  if (!*found) {
    if (!frames_->waits()) finish();
    return false;
  }
  if (!is_wanted(frame)) return true;
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

bool TraceReader::is_wanted(const Frame& frame) const {
  return pass_until_ == 0 || frame.offset >= pass_until_ ||
         (frame.type != static_cast<std::uint8_t>(format::FrameType::events) &&
          frame.type != static_cast<std::uint8_t>(format::FrameType::state));
}

Result<void> TraceReader::decode(const Frame& frame, std::vector<Event>& batch, const RecordObserver& observe) {
  if (pass_until_ != 0 && frame.offset >= pass_until_) {
    const bool is_state = static_cast<format::FrameType>(frame.type) == format::FrameType::state;
    if (frame.offset != pass_until_ || !is_state) return Error{"where a state frame was expected there is none"};
    pass_until_ = 0;
    return event_decoder_.begin_at_state(frame.payload, definitions_, batch);
  }
  switch (static_cast<format::FrameType>(frame.type)) {
    case format::FrameType::definitions:
      return definition_decoder_.decode(frame.payload, frame.stored_length, definitions_, observe);
    case format::FrameType::events:
      if (Result<void> decoded = event_decoder_.decode(frame.payload, definitions_, batch); !decoded) return decoded;
      untold_events_ += batch.size();
      return {};
    case format::FrameType::samples:
      return sample_decoder_.decode(frame.payload, frame.stored_length, observe_sample_);
    case format::FrameType::totals:
      return take_totals(frame);
    case format::FrameType::state:
      return {};  // totals of events that were read one by one
  }
  return {};
}

// Otherwise the totals cover only events that were read, and add nothing.
Result<void> TraceReader::take_totals(const Frame& frame) {
  const std::uint64_t read = std::exchange(untold_events_, 0);
  if (pass_until_ == 0) return {};
  const auto totals = decode_totals(frame.payload);
  if (!totals) return Error{"a totals frame is nonsense"};
  passed_over_ += totals->events - std::min(totals->events, read);
  return {};
}

Result<bool> TraceReader::next(std::vector<Event>& batch) {
  Frame frame;
  while (true) {
    Result<bool> found = next_frame(frame, batch);
    if (!found.ok() || !*found || !batch.empty()) return found;
  }
}

/// Adds missing data to the definitions, so that every report shows it: one entry for each kind, text and limit.
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
