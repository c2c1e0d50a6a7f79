#include "collect/recorder/lanes/generated_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <optional>
#include <vector>

#include "base/regular_file.h"

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

constexpr off_t kLargestFile = 32 << 20;
constexpr std::size_t kMaxNodesBytes = 200;  // of one line

// "# AOT ID: ['0_forward']"
std::optional<CompiledGraph> graph_in(std::string_view line) {
  constexpr std::string_view kStart = "# AOT ID: ['";
  if (!line.starts_with(kStart)) return std::nullopt;
  for (const auto& [graph, name] : kCompiledGraphNames) {
    if (line.ends_with("_" + std::string(name) + "']")) return graph;
  }
  return CompiledGraph::unknown;
}

// "# Topologically Sorted Source Nodes: [x, linear_1], Original ATen: [aten.add]"; or "# Unsorted Source Nodes: […".
std::optional<std::string> nodes_in(std::string_view comment) {
  constexpr std::string_view kStart = "Source Nodes: [";
  const std::size_t start = comment.find(kStart);
  if (start == std::string_view::npos) return std::nullopt;
  comment.remove_prefix(start + kStart.size());
  const std::string_view nodes = comment.substr(0, comment.find(']'));
  if (nodes.size() <= kMaxNodesBytes) return std::string(nodes);
  const std::size_t end = nodes.rfind(", ", kMaxNodesBytes);
  return std::string(nodes.substr(0, end)) + ", \xE2\x80\xA6";
}

bool is_name(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_';
}

// The names "buf0", "buf1" … in a line, in order.
std::vector<std::string_view> buffers_in(std::string_view line) {
  constexpr std::string_view kStart = "buf";
  std::vector<std::string_view> buffers;
  for (std::size_t at = line.find(kStart); at != std::string_view::npos; at = line.find(kStart, at)) {
    const std::size_t begin = at;
    at = static_cast<std::size_t>(
        std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(begin), line.end(), is_name) - line.begin());
    if (begin == 0 || !is_name(line[begin - 1])) buffers.push_back(line.substr(begin, at - begin));
  }
  return buffers;
}

// Reads the lines in order. A buffer that a kernel fills is allocated before the comment on the kernel:
//
//     buf0 = empty_strided_cuda((64, 1), (1, 64), torch.float32)
//     buf1 = reinterpret_tensor(buf0, (64, 1), (1, 1), 0); del buf0  # reuse
//     # Topologically Sorted Source Nodes: [layer_norm], Original ATen: [aten.native_layer_norm]
//     raw_stream0 = get_raw_stream(0)
//     triton_per_fused_native_layer_norm_0.run(buf1, …)
class CommentReader {
 public:
  void read(std::uint32_t number, std::string_view line) {
    if (const auto graph = graph_in(line)) comments.graph = *graph;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with('#')) {
      if (auto nodes = nodes_in(line)) nodes_ = std::move(*nodes);
      return;
    }
    if (line.find("get_raw_stream(") != std::string_view::npos || line.starts_with("assert_")) return;
    if (!line.starts_with("del ")) read_statement(number, line);
    nodes_.clear();
  }

  GeneratedComments comments;

 private:
  void read_statement(std::uint32_t number, std::string_view line) {
    const std::vector<std::string_view> buffers = buffers_in(line);
    if (buffers.empty()) return;
    const bool assigns = line.starts_with(buffers.front()) && line.substr(buffers.front().size()).starts_with(" = ");
    const std::string name(buffers.front());
    if (assigns && line.find(" = empty_strided") != std::string_view::npos) {
      awaited_[name] = {number};
    } else if (assigns && buffers.size() > 1 && line.find("; del ") != std::string_view::npos) {
      const auto old = awaited_.extract(std::string(buffers[1]));  // "buf1 = buf0; del buf0  # reuse"
      if (!old.empty()) awaited_[name] = old.mapped();
    } else {
      for (const std::string_view buffer : buffers) settle(std::string(buffer));
      if (assigns && !nodes_.empty()) comments.nodes[number] = nodes_;  // the kernel allocates
    }
  }

  void settle(const std::string& buffer) {
    const auto awaited = awaited_.extract(buffer);
    if (!awaited.empty() && !nodes_.empty()) comments.nodes[awaited.mapped()] = nodes_;
  }

  std::string nodes_;                                       // for the next statement
  std::unordered_map<std::string, std::uint32_t> awaited_;  // buffers that no kernel has used → line that allocates
};

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

GeneratedComments generated_comments(std::string_view text) {
  CommentReader reader;
  for (std::uint32_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.read(number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::move(reader.comments);
}

std::optional<std::string> read_generated_file(const std::string& path) {
  const auto file = open_regular_file(path);  // the process may have put any kind of file there
  struct stat status = {};
  if (!file || ::fstat(file->get(), &status) != 0 || status.st_size > kLargestFile) return std::nullopt;
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file->get(), text.data() + size, text.size() - size);
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace tidemark
