#include "import/pytorch_snapshot/model/name_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/pytorch_frames.h"
#include "store/symbols.h"

namespace tidemark::pytorch {
namespace {

constexpr std::string_view kUnknown = "??";  // as PyTorch writes a file and a function without a name
constexpr std::string_view kAutograd = "torch::autograd::";
constexpr std::string_view kEngine = "torch::autograd::Engine::";
constexpr std::string_view kNodeRuns = "torch::autograd::Engine::evaluate_function";

// The part after the last dot of the file's name.
std::string_view suffix_of(std::string_view file) {
  const std::string_view name = base_name(file);
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
}

// "train.py", "<stdin>", "<eval_with_key>.5".
bool is_python_file(std::string_view file) {
  return file.starts_with('<') || file.ends_with(".py");
}

// "ceval.c", "RegisterCUDA_0.cpp"; but not "libtorch_cpu.so", "libc.so.6", "python3.11".
bool is_native_source(std::string_view file) {
  const std::string_view suffix = suffix_of(file);
  const bool letter =
      !suffix.empty() && ((suffix[0] >= 'a' && suffix[0] <= 'z') || (suffix[0] >= 'A' && suffix[0] <= 'Z'));
  return letter && suffix != "so";
}

// A demangled name without its parameters.
std::string_view without_parameters(std::string_view function) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::size_t at = function.find('(');
  while (at != std::string_view::npos && function.substr(at).starts_with(kAnonymous)) {
    at = function.find('(', at + kAnonymous.size());
  }
  return function.substr(0, at);
}

// The class of the autograd node that runs in a native frame, "AddmmBackward0"; empty if there is none.
std::string_view node_of(std::string_view function) {
  constexpr std::string_view kApply = "::apply";
  std::string_view name = without_parameters(function);
  if (!name.ends_with(kApply)) return {};
  // Nodes of extensions are in their own namespaces.
  const bool of_node = function.substr(name.size()).starts_with("(std::vector<at::Tensor");
  if (!of_node && !name.starts_with(kAutograd)) return {};
  name.remove_suffix(kApply.size());
  const std::size_t scope = name.rfind("::", name.find('<'));
  return scope == std::string_view::npos ? name : name.substr(scope + 2);
}

// Source lines of PyTorch's frame of generated code, innermost last: lines `File "train.py", line 9, in forward` as in
// Python's tracebacks, between lines of source.
struct SourceLine {
  std::string_view file;
  std::string_view function;
  std::uint32_t line = 0;
};

std::vector<SourceLine> lines_of_trace(std::string_view trace) {
  constexpr std::size_t kMaxLines = 64;
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kFunction = ", in ";
  std::vector<SourceLine> lines;
  while (!trace.empty() && lines.size() < kMaxLines) {
    const std::size_t end = std::min(trace.find('\n'), trace.size());
    std::string_view text = trace.substr(0, end);
    trace.remove_prefix(std::min(end + 1, trace.size()));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::size_t number = text.rfind(kLine);
    if (!text.starts_with(kFile) || number == std::string_view::npos || number < kFile.size()) continue;
    SourceLine& found = lines.emplace_back();
    found.file = text.substr(kFile.size(), number - kFile.size());
    const char* const begin = text.data() + number + kLine.size();
    const char* const last = text.data() + text.size();
    const auto [behind, error] = std::from_chars(begin, last, found.line);
    const std::string_view rest(behind, static_cast<std::size_t>(last - behind));
    if (error != std::errc() || !rest.starts_with(kFunction)) {
      lines.pop_back();
      continue;
    }
    found.function = rest.substr(kFunction.size());
  }
  return lines;
}

class FrameNamer {
 public:
  explicit FrameNamer(Snapshot& snapshot) : snapshot_(snapshot), definitions_(snapshot.definitions) {}

  void run() {
    name_locations();
    add_sources_of_generated();
    find_stacks_to_change();
    for (DeviceTrace& trace : snapshot_.traces) {
      for (TraceEntry& entry : trace.entries) change(entry.stack);
    }
    for (SnapshotSegment& segment : snapshot_.segments) {
      change(segment.stack);
      for (SnapshotBlock& block : segment.blocks) change(block.stack);
    }
  }

 private:
  // Facts about a frame.
  struct FrameFacts {
    bool python = false;
    bool backward = false;            // kBackwardFrame, of a recording that was exported
    bool engine = false;              // of autograd
    bool runs_node = false;           // the engine's call of one
    std::vector<LocationId> sources;  // of generated code
  };
  // Facts about a stack, from its innermost frame and its callers.
  struct StackFacts {
    bool python = false;
    bool native = false;
    bool native_calls_python = false;
    bool backward = false;
    bool in_node = false;  // in a node, without Python code of the node
    bool generated = false;
    [[nodiscard]] bool needs_change() const { return native_calls_python || in_node || generated; }
  };

  [[nodiscard]] std::string_view text(StringId id) const { return definitions_.strings[id.value]; }

  StringId string(std::string_view text) {
    const auto [entry, is_new] = strings_.try_emplace(std::string(text), StringId{});
    if (is_new) {
      entry->second.value = static_cast<std::uint32_t>(definitions_.strings.size());
      definitions_.strings.emplace_back(text);
    }
    return entry->second;
  }

  // A snapshot with Python stacks alone may be of a program without a suffix, "bin/train".
  void name_locations() {
    const bool has_native =
        std::any_of(definitions_.locations.begin(), definitions_.locations.end(), [&](const Location& location) {
          const std::string_view file = text(location.file);
          return !is_python_file(file) && (location.line == 0 || !suffix_of(file).empty());
        });
    bool python = false;
    bool native = false;
    for (Location& location : definitions_.locations) {
      FrameFacts& facts = frames_.emplace_back();
      facts.python = is_python_file(text(location.file)) || !has_native;
      (facts.python ? python : native) = true;
      if (!facts.python) {
        name_native(location, facts);
      } else if (text(location.file) == kNoPythonFile) {
        facts.backward = text(location.function) == kBackwardFrame;
        location.file = {};
      }
    }
    definitions_.process.stack_mode = python && native ? "both" : python ? "python" : native ? "native" : "none";
  }

  void name_native(Location& location, FrameFacts& facts) {
    const std::string_view file = text(location.file);
    const std::string_view function = text(location.function);
    facts.engine = function.starts_with(kEngine);
    facts.runs_node = function.starts_with(kNodeRuns);
    location.kind = Location::Kind::named_native;
    if (!is_native_source(file)) {
      const std::uint32_t offset = std::exchange(location.line, 0);
      if (offset != 0 && function == kUnknown)
        location.function = string(fmt::format("{}+0x{:x}", base_name(file), offset));
    }
    if (text(location.file) == kUnknown) location.file = {};
  }

  void add_sources_of_generated() {
    for (const GeneratedFrame& generated : snapshot_.generated_frames) {
      Location& location = definitions_.locations[generated.location.value];
      location.graph = CompiledGraph::unknown;
      location.source_nodes = generated.node;
      if (!generated.trace.valid()) continue;
      const std::string trace(text(generated.trace));  // strings are added
      for (const SourceLine& line : lines_of_trace(trace)) {
        Location source;
        source.file = string(line.file);
        source.function = string(line.function);
        source.line = line.line;
        source.graph = CompiledGraph::unknown;
        const LocationId added = add(source);  // frames_ grows
        frames_[generated.location.value].sources.push_back(added);
      }
    }
  }

  LocationId add(const Location& location) {
    const LocationId id{static_cast<std::uint32_t>(definitions_.locations.size())};
    definitions_.locations.push_back(location);
    frames_.emplace_back().python = true;
    return id;
  }

  // A Python frame that is no place in a file.
  LocationId named(std::string_view name) {
    const StringId function = string(name);
    const auto [entry, is_new] = named_.try_emplace(function.value, LocationId{});
    if (is_new) {
      Location location;
      location.function = function;
      entry->second = add(location);
    }
    return entry->second;
  }

  void find_stacks_to_change() {
    stacks_.reserve(definitions_.stacks.size());
    for (const StackNode& node : definitions_.stacks) {  // callers come before their callees
      StackFacts facts = node.parent.valid() ? stacks_[node.parent.value] : StackFacts{};
      const FrameFacts& frame = frames_[node.location.value];
      facts.native_calls_python |= frame.python && facts.native;
      facts.backward |= frame.backward;
      facts.in_node = !frame.python && !facts.backward && (facts.in_node || frame.runs_node);
      facts.generated |= !frame.sources.empty();
      (frame.python ? facts.python : facts.native) = true;
      stacks_.push_back(facts);
    }
    changed_.resize(stacks_.size());
  }

  void change(StackId& stack) {
    if (!stack.valid() || !stacks_[stack.value].needs_change()) return;
    StackId& changed = changed_[stack.value];
    if (!changed.valid()) changed = make(stack);
    stack = changed;
  }

  StackId make(StackId stack) {
    const std::vector<LocationId> frames = frames_of(definitions_, stack);
    const auto is_python = [&](LocationId frame) { return frames_[frame.value].python; };
    const auto native = std::find_if(frames.rbegin(), frames.rend(), is_python).base();
    StackId made;
    for (auto frame = frames.begin(); frame != native; ++frame) {
      if (!is_python(*frame) && !frames_[frame->value].engine) continue;
      made = push(made, *frame);
      for (const LocationId source : frames_[frame->value].sources) made = push(made, source);
    }
    if (stacks_[stack.value].in_node) {
      made = push(made, named(kBackwardFrame));
      made = push(made, named(name_of_work({native, frames.end()})));
    }
    for (auto frame = native; frame != frames.end(); ++frame) made = push(made, *frame);
    return made;
  }

  // For native frames in which autograd's engine runs: the class of the innermost node, else the callee of the engine.
  std::string name_of_work(const std::vector<LocationId>& frames) const {
    const auto function = [&](LocationId id) { return text(definitions_.locations[id.value].function); };
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      if (const std::string_view node = node_of(function(*frame)); !node.empty()) return std::string(node);
    }
    std::string_view name;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      const std::string_view called = without_parameters(function(*frame));
      const bool runs_node = frames_[frame->value].runs_node;
      if (called.starts_with(kAutograd) && (!runs_node || name.empty())) name = called.substr(kAutograd.size());
      if (runs_node) break;
    }
    return std::string(name);
  }

  StackId push(StackId parent, LocationId location) {
    const std::uint64_t key = std::uint64_t{parent.value} << 32 | location.value;
    const auto [entry, is_new] = nodes_.try_emplace(key, StackId{});
    if (is_new) {
      entry->second.value = static_cast<std::uint32_t>(definitions_.stacks.size());
      definitions_.stacks.push_back({parent, location});
    }
    return entry->second;
  }

  Snapshot& snapshot_;
  Definitions& definitions_;
  std::vector<FrameFacts> frames_;                       // by LocationId
  std::vector<StackFacts> stacks_;                       // by StackId, of the file's
  std::vector<StackId> changed_;                         // by StackId; invalid: not created yet
  std::unordered_map<std::string, StringId> strings_;    // added strings
  std::unordered_map<std::uint32_t, LocationId> named_;  // by function
  std::unordered_map<std::uint64_t, StackId> nodes_;     // added nodes, by parent and location
};

}  // namespace

void name_frames(Snapshot& snapshot) {
  FrameNamer(snapshot).run();
}

}  // namespace tidemark::pytorch
