// Holders: owners of a recorded process's memory, by stack, module or category.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/stack_text.h"
#include "tui/table.h"
#include "tui/view.h"
#include "tui/views/parts.h"

namespace tidemark::tui {
namespace {

constexpr std::array<const char*, kHeldBy> kGroupings = {"stack", "module", "category"};
constexpr std::array<const char*, kHeldBy> kHeadings = {"STACK", "MODULE", "CATEGORY"};

// Choices of the left and right keys: each device of each recorded process.
struct Choice {
  const ProcessResults* process = nullptr;
  const DeviceHolders* device = nullptr;  ///< null: there is none to show
};

std::vector<Choice> choices_of(const Content& content) {
  std::vector<Choice> choices;
  for (const ProcessResults& process : content.recorded) {
    for (const DeviceHolders& device : process.devices) choices.push_back({&process, &device});
    if (process.devices.empty()) choices.push_back({&process, nullptr});
  }
  return choices;
}

const std::optional<std::vector<Holder>>* holders_of(const Content& content, const ViewState& state) {
  const std::vector<Choice> choices = choices_of(content);
  if (choices.empty()) return nullptr;
  const DeviceHolders* device = choices[row_of(state.other, choices.size())].device;
  return device == nullptr ? nullptr : &device->by[state.order];
}

std::size_t holder_row_count(const Content& content, const ViewState& state) {
  const auto* holders = holders_of(content, state);
  return holders == nullptr || !*holders ? 0 : (*holders)->size();
}

std::size_t holder_others(const Content& content) {
  return choices_of(content).size();
}

std::string change_text(std::int64_t bytes) {
  if (bytes == 0) return "0 B";
  const auto size = static_cast<std::uint64_t>(bytes < 0 ? -bytes : bytes);
  return (bytes < 0 ? "-" : "+") + format_bytes(size);
}

void draw_table_of(const Region& region, const DeviceHolders& device, const ViewState& state) {
  const auto& holders = device.by[state.order];
  if (!holders) {
    draw_paragraph(region, 0, "n/a: the recording does not say so: the program has no modules, or --attribute is off.",
                   Role::quiet);
    return;
  }
  std::vector<ListColumn> columns = {{.heading = "BYTES", .width = 10},
                                     {.heading = "SHARE", .width = 7},
                                     {.heading = "CHANGE", .width = 11},
                                     {.heading = "BLOCKS", .width = 9},
                                     {.heading = kHeadings[state.order], .left = true, .sorted = true}};
  // A stack that is too long keeps its place and loses its callers, not its middle.
  const std::size_t room = last_width(columns, region.width());
  std::vector<ListRow> rows;
  for (const Holder& holder : *holders) {
    const double share = device.allocated_bytes == 0
                             ? 0.0
                             : 100.0 * static_cast<double>(holder.bytes) / static_cast<double>(device.allocated_bytes);
    rows.push_back({{format_bytes(holder.bytes)},
                    {fmt::format("{:.1f} %", share)},
                    {change_text(holder.change_bytes), holder.change_bytes > 0 ? Role::warning : Role::plain},
                    {format_count(holder.blocks)},
                    {holder.stack ? stack_text_with_callers(*holder.stack, room) : holder.name}});
  }
  draw_table(region, columns, rows, row_of(state.selected, rows.size()));
}

// The process and device, then the table.
void draw_choice(const Region& region, const Choice& choice, const ViewState& state) {
  const std::size_t x = region.print(
      0, 0, fmt::format("{} (PID {})", shown(choice.process->name, 40), choice.process->pid), Role::heading);
  if (!choice.process->problem.empty()) {
    draw_paragraph(region, 2, choice.process->problem, Role::critical);
  } else if (choice.process->reading) {
    region.print(0, 2, "What was recorded before is being read.", Role::quiet);
  } else if (choice.device == nullptr) {
    region.print(0, 2, "It has allocated no memory yet.", Role::quiet);
  } else {
    region.print(x + 2, 0,
                 fmt::format("{}: {} allocated, peak {}", choice.device->device,
                             format_bytes(choice.device->allocated_bytes), format_bytes(choice.device->peak_bytes)));
    draw_table_of(region.below(2), *choice.device, state);
  }
}

void draw_holders(const Region& region, const Content& content, const ViewState& state) {
  const std::vector<Choice> choices = choices_of(content);
  if (choices.empty()) {
    draw_paragraph(region, draw_paragraph(region, 0, "n/a: no process is being recorded on this machine."),
                   "Start the program with `tidemark run -- python train.py`; its holders appear here.", Role::quiet);
    return;
  }
  if (state.selected == kNoRow) {
    std::size_t y = 0;
    for (const Choice& choice : choices) {
      draw_choice(region.below(y), choice, state);
      const auto* holders = choice.device == nullptr ? nullptr : &choice.device->by[state.order];
      y += 4 + (holders == nullptr || !*holders ? 0 : (*holders)->size());
    }
    return;
  }
  const std::size_t chosen = row_of(state.other, choices.size());
  draw_choice(region, choices[chosen], state);
  if (choices.size() > 1) region.print_right(region.width(), 0, fmt::format("{} of {}", chosen + 1, choices.size()));
}

}  // namespace

View holders_view() {
  return {.name = "holders",
          .title = "Holders",
          .keys = "s grouping  left/right process",
          .orders = kGroupings,
          .of_recordings = true,
          .rows = holder_row_count,
          .others = holder_others,
          .draw = draw_holders};
}

}  // namespace tidemark::tui
