#include "collect/recorder/lanes/generated_file.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

namespace tidemark {
namespace {

constexpr std::size_t kMaxSources = 64;

// '  File "model.py", line 31, in forward'
std::optional<SourceFrame> parse_frame(std::string_view text) {
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kFunction = ", in ";
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::size_t line_at = text.rfind(kLine);
  if (!text.starts_with(kFile) || line_at == std::string_view::npos || line_at < kFile.size()) return std::nullopt;
  SourceFrame frame;
  frame.file = text.substr(kFile.size(), line_at - kFile.size());
  text.remove_prefix(line_at + kLine.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), frame.line);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || !text.starts_with(kFunction)) return std::nullopt;
  frame.function = text.substr(kFunction.size());
  return frame;
}

}  // namespace

std::vector<SourceFrame> parse_stack_trace(std::string_view text) {
  std::vector<SourceFrame> frames;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto frame = parse_frame(text.substr(0, end))) frames.push_back(std::move(*frame));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (frames.size() > kMaxSources) {
    frames.erase(frames.begin(), frames.end() - static_cast<std::ptrdiff_t>(kMaxSources));
  }
  return frames;
}

const std::vector<SourceFrame>& GeneratedFile::sources(std::uint32_t line) const {
  static const std::vector<SourceFrame> kNone;
  const auto after = trace_at_.upper_bound(line);
  if (after == trace_at_.begin()) return kNone;
  const auto is_known = [this](const auto& entry) { return entry.second > 0 && entry.second <= traces_.size(); };
  if (const auto next = std::find_if(std::prev(after), trace_at_.end(), is_known); next != trace_at_.end()) {
    return traces_[next->second - 1];
  }
  const auto last = std::find_if(std::make_reverse_iterator(after), trace_at_.rend(), is_known);
  return last == trace_at_.rend() ? kNone : traces_[last->second - 1];
}

std::string_view GeneratedFile::nodes(std::uint32_t line) const {
  const auto nodes = comments_.nodes.find(line);
  return nodes == comments_.nodes.end() ? std::string_view() : nodes->second;
}

}  // namespace tidemark
