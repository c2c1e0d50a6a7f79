#include "export/column_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analyze/common/annotations.h"
#include "analyze/common/recording_info.h"
#include "analyze/common/stack_names.h"
#include "query/words/frame_text.h"
#include "query/words/printable.h"
#include "query/words/stack_text.h"

namespace tidemark {
namespace {

using Value = std::optional<std::uint64_t>;

// Texts of numbered things, equal ones once.
class Texts {
 public:
  explicit Texts(std::size_t count = 0) : codes_(count, kNone) {}

  void set(std::size_t index, std::string_view raw) {
    std::string text = printable(raw);
    const auto [entry, is_new] = known_.try_emplace(text, static_cast<std::uint32_t>(words_.size()));
    if (is_new) words_.push_back(std::move(text));
    codes_[index] = entry->second;
  }
  [[nodiscard]] Value code(std::size_t index) const {
    return index < codes_.size() && codes_[index] != kNone ? Value(codes_[index]) : std::nullopt;
  }
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint32_t> codes_;
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::uint32_t> known_;
};

// Computed on the first access, by one of the accessing threads.
template <typename T>
class Lazy {
 public:
  explicit Lazy(std::function<T()> make) : make_(std::move(make)) {}
  const T& get() {
    std::call_once(once_, [this] { value_ = make_(); });
    return value_;
  }

 private:
  std::once_flag once_;
  std::function<T()> make_;
  T value_;
};

template <typename Make>
auto lazy(Make make) {
  return std::make_shared<Lazy<decltype(make())>>(std::move(make));
}

// Outermost frame first, as in folded stacks, with the paths as recorded.
std::string whole_stack(const NamedStack& stack) {
  std::string text;
  for (const FrameName& frame : stack.frames) {
    if (!text.empty()) text += ';';
    text += function_text(frame);
    if (frame.file.empty()) continue;
    text += frame.line == 0 ? fmt::format(" ({})", frame.file) : fmt::format(" ({}:{})", frame.file, frame.line);
  }
  return text;
}

struct StackTexts {
  Texts call_sites;
  Texts stacks;
};

StackTexts name_stacks(const Store& store, Symbols& symbols) {
  const std::size_t count = store.definitions.stacks.size();
  StackTexts texts{Texts(count), Texts(count)};
  std::vector<bool> seen(count);
  for (const StackId stack : store.blocks.stack) {
    if (!stack.valid() || stack.value >= count || seen[stack.value]) continue;
    seen[stack.value] = true;
    const NamedStack named = name_stack(symbols, stack);
    texts.call_sites.set(stack.value, stack_text(named));
    texts.stacks.set(stack.value, whole_stack(named));
  }
  return texts;
}

struct AnnotationTexts {
  std::vector<StringId> of_blocks;  // empty if no block has one
  Texts texts;                      // by StringId

  [[nodiscard]] Value of(std::size_t block) const {
    return of_blocks.empty() ? std::nullopt : texts.code(of_blocks[block].value);
  }
};

AnnotationTexts name_annotations(const Store& store) {
  AnnotationTexts made;
  if (store.definitions.marks.empty() && store.blocks.metadata.empty()) return made;
  made.of_blocks = annotations_of_blocks(store);
  made.texts = Texts(store.definitions.strings.size());
  for (const StringId text : made.of_blocks) {
    if (text.valid() && !made.texts.code(text.value)) made.texts.set(text.value, store.definitions.strings[text.value]);
  }
  return made;
}

// The columns of blocks: their rows are BlockIds.
class BlockColumns {
 public:
  explicit BlockColumns(const TableSource& source) : source_(source), store_(source.store) {}

  std::vector<Column> make() {
    const std::shared_ptr<const Store> store = store_;
    const Blocks& blocks = store->blocks;
    number("allocated_at_ns", false, [store](std::size_t block) -> Value {
      return store->live_changes[store->blocks.birth_change[block]].time_ns;
    });
    number("freed_at_ns", true, [store](std::size_t block) -> Value {
      const std::uint32_t death = store->blocks.death_change[block];
      return death == Blocks::kAlive ? std::nullopt : Value(store->live_changes[death].time_ns);
    });
    text(
        "device", false, store->devices.size(),
        [store](std::size_t device, Texts& texts) { texts.set(device, to_string(store->devices[device].device)); },
        [store](std::size_t block) -> std::size_t { return store->blocks.device[block]; });
    direct("address", Column::Kind::address, blocks.address);
    direct("size_bytes", Column::Kind::number, blocks.size);
    direct("requested_bytes", Column::Kind::number, blocks.requested);
    add_details(store);
    add_stacks(store);
    if (source_.attribution != nullptr) add_owner(source_.attribution);
    return std::move(columns_);
  }

 private:
  using Key = std::function<std::size_t(std::size_t block)>;  // in a table of the store; beyond it: none

  template <typename Function>
  void number(const char* name, bool nullable, Function value, Column::Kind kind = Column::Kind::number) {
    columns_.push_back({name, kind, nullable, {}, std::move(value)});
  }
  // A column of the store; null in every row if the store has none.
  void direct(const char* name, Column::Kind kind, const std::vector<std::uint64_t>& values) {
    if (values.empty())
      return number(
          name, true, [](std::size_t) -> Value { return std::nullopt; }, kind);
    number(
        name, false, [store = store_, &values](std::size_t block) -> Value { return values[block]; }, kind);
    columns_.back().direct = values;
  }
  void text(const char* name, bool nullable, std::size_t count, std::function<void(std::size_t, Texts&)> set, Key key) {
    auto texts = lazy([count, set = std::move(set)] {
      Texts made(count);
      for (std::size_t index = 0; index < count; ++index) set(index, made);
      return made;
    });
    columns_.push_back({name,
                        Column::Kind::text,
                        nullable,
                        {},
                        [texts, key = std::move(key)](std::size_t block) { return texts->get().code(key(block)); },
                        [texts]() -> const std::vector<std::string>& { return texts->get().words(); }});
  }
  // The names of an enumeration.
  template <typename Enum, std::size_t Count, typename Of>
  void named(const char* name, const EnumName<Enum> (&names)[Count], const Of& of) {
    std::size_t most = 0;
    for (const EnumName<Enum>& entry : names) most = std::max(most, static_cast<std::size_t>(entry.value));
    text(
        name, false, most + 1,
        [&names](std::size_t index, Texts& texts) {
          for (const EnumName<Enum>& entry : names) {
            if (static_cast<std::size_t>(entry.value) == index) texts.set(index, entry.name);
          }
        },
        [of](std::size_t block) { return static_cast<std::size_t>(of(block)); });
  }

  void add_details(const std::shared_ptr<const Store>& store) {
    number(
        "stream", true,
        [store](std::size_t block) -> Value {
          return store->blocks.stream.empty() ? std::nullopt : Value(store->streams[store->blocks.stream[block]]);
        },
        Column::Kind::address);
    text(
        "pool", true, store->pools.size(),
        [store](std::size_t pool, Texts& texts) {
          texts.set(pool, fmt::format("{}:{}", store->pools[pool].first, store->pools[pool].second));
        },
        [store](std::size_t block) -> std::size_t {
          return store->blocks.pool.empty() ? store->pools.size() : store->blocks.pool[block];
        });
    number("tid", true, [store](std::size_t block) -> Value {
      const ThreadId thread = store->blocks.thread[block];
      if (!thread.valid()) return std::nullopt;
      const auto tid = store->definitions.threads[thread.value].tid;
      return tid ? Value(static_cast<std::uint64_t>(*tid)) : std::nullopt;
    });
    text(
        "thread_name", true, store->definitions.threads.size(),
        [store](std::size_t thread, Texts& texts) {
          const std::string& name = store->definitions.threads[thread].name;
          if (!name.empty()) texts.set(thread, name);
        },
        [store](std::size_t block) -> std::size_t { return store->blocks.thread[block].value; });
    auto annotations = lazy([store] { return name_annotations(*store); });
    columns_.push_back(
        {"annotation",
         Column::Kind::text,
         true,
         {},
         [annotations](std::size_t block) { return annotations->get().of(block); },
         [annotations]() -> const std::vector<std::string>& { return annotations->get().texts.words(); }});
  }

  void add_stacks(const std::shared_ptr<const Store>& store) {
    auto texts = lazy([store, symbols = source_.symbols] {
      if (symbols) return name_stacks(*store, *symbols);
      Symbols own(store->definitions);
      return name_stacks(*store, own);
    });
    const auto add = [&](const char* name, Texts StackTexts::*which) {
      columns_.push_back(
          {name,
           Column::Kind::text,
           true,
           {},
           [store, texts, which](std::size_t block) {
             return (texts->get().*which).code(store->blocks.stack[block].value);
           },
           [texts, which]() -> const std::vector<std::string>& { return (texts->get().*which).words(); }});
    };
    add("call_site", &StackTexts::call_sites);
    add("stack", &StackTexts::stacks);
  }

  void add_owner(const std::shared_ptr<const Attribution>& owners) {
    named("category", kCategoryNames, [owners](std::size_t block) { return owners->blocks[block].category; });
    named("category_confidence", kConfidenceNames,
          [owners](std::size_t block) { return owners->blocks[block].category_confidence; });
    named("phase", kPhaseNames, [owners](std::size_t block) { return owners->blocks[block].phase; });
    named("component", kComponentNames, [owners](std::size_t block) { return owners->blocks[block].component; });
    text(
        "module", true, owners->modules.size(),
        [owners](std::size_t module, Texts& texts) { texts.set(module, owners->modules[module].path); },
        [owners](std::size_t block) -> std::size_t { return owners->blocks[block].module.value; });
  }

  TableSource source_;
  std::shared_ptr<const Store> store_;
  std::vector<Column> columns_;
};

// The rows of a table of blocks are others: row n is of block_of(n).
template <typename BlockOf>
void choose_rows(std::vector<Column>& columns, const BlockOf& block_of) {
  for (Column& column : columns) {
    column.direct = {};
    column.value = [value = std::move(column.value), block_of](std::size_t row) { return value(block_of(row)); };
  }
}

// Blocks selected by the options; null: all.
Result<std::shared_ptr<const std::vector<BlockId>>> exported_blocks(const Store& store, const ExportOptions& options) {
  const auto selected = select_devices(store, options.device);
  if (!selected) return selected.error();
  if (selected->size() == store.devices.size() && options.filter.all())
    return std::shared_ptr<const std::vector<BlockId>>();
  std::vector<bool> wanted(store.devices.size());
  for (const std::size_t device : *selected) wanted[device] = true;
  std::vector<BlockId> blocks;
  for (std::uint32_t block = 0; block < store.blocks.count(); ++block) {
    if (wanted[store.blocks.device[block]] && options.filter(block)) blocks.push_back(BlockId{block});
  }
  return std::make_shared<const std::vector<BlockId>>(std::move(blocks));
}

}  // namespace

ColumnTable block_table(const TableSource& source, const std::shared_ptr<const std::vector<BlockId>>& blocks) {
  ColumnTable table{source.store->blocks.count(), BlockColumns(source).make()};
  if (blocks == nullptr) return table;
  table.row_count = blocks->size();
  choose_rows(table.columns, [blocks](std::size_t row) -> std::size_t { return (*blocks)[row].value; });
  return table;
}

Result<ColumnTable> exported_table(const Store& store, Symbols& symbols, const ExportOptions& options) {
  const auto blocks = exported_blocks(store, options);
  if (!blocks) return blocks.error();
  const std::shared_ptr<void> borrowed;  // not owned
  TableSource source{{borrowed, &store}, nullptr, {borrowed, &symbols}};
  if (options.attribution != nullptr) source.attribution = {borrowed, options.attribution};
  return block_table(source, *blocks);
}

ColumnTable event_table(const TableSource& source) {
  const std::shared_ptr<const Store> store = source.store;
  ColumnTable table{store->live_changes.size(), {}};
  static const std::vector<std::string> kEvents = {"allocation", "free"};
  table.columns.push_back({"time_ns", Column::Kind::number, false, {}, [store](std::size_t row) -> Value {
                             return store->live_changes[row].time_ns;
                           }});
  table.columns.push_back({"event",
                           Column::Kind::text,
                           false,
                           {},
                           [store](std::size_t row) -> Value { return store->live_changes[row].birth ? 0 : 1; },
                           []() -> const std::vector<std::string>& { return kEvents; }});
  table.columns.push_back({"block", Column::Kind::number, false, {}, [store](std::size_t row) -> Value {
                             return store->live_changes[row].block.value;
                           }});
  std::vector<Column> of_blocks = BlockColumns(source).make();
  choose_rows(of_blocks, [store](std::size_t row) -> std::size_t { return store->live_changes[row].block.value; });
  for (Column& column : of_blocks) {
    if (column.name != "allocated_at_ns" && column.name != "freed_at_ns") table.columns.push_back(std::move(column));
  }
  return table;
}

}  // namespace tidemark
