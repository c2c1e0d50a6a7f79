#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/common/annotations.h"
#include "analyze/common/devices.h"
#include "analyze/common/stack_names.h"
#include "export/format.h"
#include "report/text/csv_field.h"
#include "report/words/frame_text.h"
#include "report/words/stack_text.h"

namespace tidemark {
namespace {

// What blocks have in common is made into text once.
class BlockRows {
 public:
  BlockRows(const Store& store, Symbols& symbols, const Attribution* attribution)
      : store_(store), symbols_(symbols), attribution_(attribution) {
    for (const DeviceSummary& device : store.devices) devices_.push_back(to_string(device.device));
    for (const ThreadInfo& thread : store.definitions.threads) threads_.push_back(thread_fields(thread));
    if (!store.definitions.marks.empty() || !store.blocks.metadata.empty()) annotations_ = annotations_of_blocks(store);
    for (const PoolId& pool : store.pools) pools_.push_back(fmt::format("{}:{}", pool.first, pool.second));
  }

  void append(std::size_t block, std::string& text) {
    const Blocks& blocks = store_.blocks;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{},", store_.live_changes[blocks.birth_change[block]].time_ns);
    if (blocks.death_change[block] != Blocks::kAlive) {
      fmt::format_to(out, "{}", store_.live_changes[blocks.death_change[block]].time_ns);
    }
    fmt::format_to(out, ",{},0x{:x},{},", devices_[blocks.device[block]], blocks.address[block], blocks.size[block]);
    if (!blocks.requested.empty()) fmt::format_to(out, "{}", blocks.requested[block]);
    text += ',';
    if (!blocks.stream.empty()) fmt::format_to(out, "{}", store_.streams[blocks.stream[block]]);
    text += ',';
    if (!blocks.pool.empty()) text += pools_[blocks.pool[block]];
    text += ',';
    const ThreadId thread = blocks.thread[block];
    text += thread.valid() ? threads_[thread.value] : ",";
    text += ',';
    if (!annotations_.empty() && annotations_[block].valid()) {
      text += csv_field(store_.definitions.strings[annotations_[block].value]);
    }
    text += ',';
    text += stack_fields(blocks.stack[block]);
    if (attribution_ != nullptr) append_owner(attribution_->blocks[block], text);
    text += '\n';
  }

 private:
  void append_owner(const Owner& owner, std::string& text) const {
    fmt::format_to(std::back_inserter(text), ",{},{},{},{},", name_in(kCategoryNames, owner.category),
                   name_in(kKnownAsNames, owner.category_known), name_in(kPhaseNames, owner.phase),
                   name_in(kComponentNames, owner.component));
    if (owner.module.valid()) text += csv_field(attribution_->modules[owner.module.value].path);
  }

  static std::string thread_fields(const ThreadInfo& thread) {
    return fmt::format("{},{}", thread.tid ? std::to_string(*thread.tid) : "", csv_field(thread.name));
  }

  // The call site and the whole stack.
  const std::string& stack_fields(StackId stack) {
    const auto [entry, is_new] = stacks_.try_emplace(stack, ",");
    if (is_new && stack.valid()) {
      const NamedStack named = name_stack(symbols_, stack);
      entry->second = csv_field(stack_text(named)) + "," + csv_field(whole_stack(named));
    }
    return entry->second;
  }

  // Outermost frame first, as in folded stacks, with the paths as recorded.
  static std::string whole_stack(const NamedStack& stack) {
    std::string text;
    for (const FrameName& frame : stack.frames) {
      if (!text.empty()) text += ';';
      text += frame.kind == Location::Kind::native ? short_function(frame.function) : frame.function;
      if (!frame.file.empty())
        text += frame.line == 0 ? fmt::format(" ({})", frame.file) : fmt::format(" ({}:{})", frame.file, frame.line);
    }
    return text;
  }

  const Store& store_;
  Symbols& symbols_;
  const Attribution* attribution_;
  std::vector<std::string> devices_;
  std::vector<std::string> threads_;
  std::vector<std::string> pools_;
  std::vector<StringId> annotations_;  // by block; empty where there are none
  std::unordered_map<StackId, std::string> stacks_;
};

/// Every block, one a line (RFC 4180, with \n line ends). Unknown values are empty fields.
Result<void> write_csv(const Store& store, Symbols& symbols, const ExportOptions& options, const ByteOutput& output,
                       const Progress& progress) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  std::vector<bool> wanted(store.devices.size());
  for (const std::size_t device : *selected) wanted[device] = true;

  BlockRows rows(store, symbols, options.attribution);
  std::string text =
      "allocated_at_ns,freed_at_ns,device,address,size_bytes,requested_bytes,stream,pool,tid,thread_name,annotation,"
      "call_site,stack";
  text += options.attribution != nullptr ? ",category,category_known_as,phase,component,module\n" : "\n";
  for (std::size_t block = 0; block < store.blocks.count(); ++block) {
    if (wanted[store.blocks.device[block]] && options.filter(block)) rows.append(block, text);
    if (text.size() < kOutputPiece) continue;
    if (auto written = output(text); !written) return written;
    text.clear();
    if (progress) progress(block, store.blocks.count());
  }
  return output(text);
}

}  // namespace

ExportFormat csv_format() {
  return {"csv", "every block, one per line", ".blocks.csv", false, false, true, write_csv};
}

}  // namespace tidemark
