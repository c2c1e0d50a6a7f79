#include "export/pytorch_pickle.h"

#include <algorithm>
#include <array>

#include "query/words/frame_text.h"
#include "query/words/printable.h"
#include "store/pytorch_frames.h"

namespace tidemark::pytorch {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Word::count)> kWords = {
    "action",
    "addr",
    "size",
    "stream",
    "time_us",
    "frames",
    "device_free",
    "pool_id",
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "user_defined",
    "annotate",
    "user_metadata",
    "filename",
    "line",
    "name",
    "device",
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "segment_type",
    "small",
    "large",
    "segment_pool_id",
    "is_expandable",
    "blocks",
    "state",
    "active_allocated",
    "active_pending_free",
    "inactive",
    "PYTORCH_CUDA_ALLOC_CONF",
    "max_split_size",
    "garbage_collection_threshold",
    "expandable_segments",
    "roundup_power2_divisions",
    "stage",
    "START",
    "END",
    "device_traces",
    "segments",
    "allocator_settings",
    "external_annotations",
    "tidemark_devices",
};
static_assert(kWords.back() == "tidemark_devices", "one text for each word");

constexpr std::string_view kUnknownFile = "??";  // as PyTorch writes it

}  // namespace

SnapshotPickle::SnapshotPickle(const Store& store, Symbols& symbols, const Attribution* attribution,
                               const ByteOutput& output)
    : PickleWriter(kWords, output),
      symbols_(symbols),
      block_columns_(store.blocks),
      attribution_(attribution),
      strings_(store.definitions.strings),
      start_wall_ns_(store.definitions.process.start_wall_ns.value_or(0)),
      streams_(store.streams),
      pools_(store.pools),
      written_pools_(store.pools.size()) {}

void SnapshotPickle::string(StringId id) {
  text(id.valid() && id.value < strings_.size() ? printable(strings_[id.value]) : "");
}

void SnapshotPickle::block_frames_item(std::uint32_t block) {
  const StackId stack = block_columns_.stack[block];
  if (attribution_ == nullptr) return frames_item(stack);
  frames_item(stack, attribution_->blocks[block].category);
}

void SnapshotPickle::frames_item(StackId stack, std::optional<Category> category) {
  if (!stack.valid() && !category) return;
  word(Word::frames);
  if (const auto written = written_stacks_.find({stack, category}); written != written_stacks_.end())
    return again(written->second);
  std::vector<LocationId> locations = symbols_.frames(stack);
  std::reverse(locations.begin(), locations.end());
  begin_list();
  for (const LocationId location : locations) {
    next_item();
    const auto [entry, is_new] = written_frames_.try_emplace(location, 0);
    if (!is_new) {
      again(entry->second);
      continue;
    }
    frame(symbols_.name(location));
    entry->second = remember();
  }
  if (category) {
    next_item();
    remark(name_in(kCategoryNames, *category));
  }
  end_list();
  written_stacks_.emplace(CategorizedStack{stack, category}, remember());
}

void SnapshotPickle::remark_item(std::string_view text) {
  word(Word::frames);
  begin_list();
  next_item();
  remark(text);
  end_list();
}

void SnapshotPickle::remark(std::string_view text) {
  FrameName words;
  words.function = text;
  words.file = "tidemark";
  frame(words);
}

void SnapshotPickle::frame(const FrameName& frame) {
  begin_dict();
  word(Word::filename);
  const bool python = frame.kind == Location::Kind::python;
  text(!frame.file.empty() ? printable(frame.file) : std::string(python ? kNoPythonFile : kUnknownFile));
  item(Word::line, frame.line);
  word(Word::name);
  text(printable(frame.function + compiled_text(frame)));
  end_dict();
}

void SnapshotPickle::pool_item(Word key, std::size_t index) {
  if (index >= pools_.size()) return;
  word(key);
  std::optional<PickleMemo>& written = written_pools_[index];
  if (written) return again(*written);
  integer(pools_[index].first);
  integer(pools_[index].second);
  make_pair();
  written = remember();
}

}  // namespace tidemark::pytorch
