// Devices: usage, activity, and the risk of running out of memory.
#include <fmt/format.h>

#include "base/units.h"
#include "query/words/printable.h"
#include "query/words/rates.h"
#include "query/words/risks.h"
#include "tui/chart.h"
#include "tui/table.h"
#include "tui/view.h"
#include "tui/views/parts.h"

namespace tidemark::tui {
namespace {

constexpr std::size_t kRowsOfDevice = 2;
constexpr std::size_t kDetailRows = 5;

// Right-aligned columns.
constexpr std::size_t kRisk = 0;
constexpr std::size_t kPower = 10;
constexpr std::size_t kTemperature = 20;
constexpr std::size_t kUtilization = 28;

std::size_t draw_evidence(const Region& region, const MachineState& machine, const WatchedDevice& device) {
  return draw_risk(region, device.risk, device.assessed_at_ns.has_value(), recommendation_text(device, machine));
}

void draw_device(const Region& region, std::size_t y, const MachineState& machine, const WatchedDevice& device) {
  const std::size_t end = region.width();
  const Region title = region.part(0, y, end - std::min(end, kUtilization + 7), 1);
  title.print(0, 0, fit(printable(watched_title(device, machine)), title.width()), Role::heading);
  if (!device.lost.empty()) {
    region.part(2, y + 1, end - 2, 1).print(0, 0, fit(printable(device.lost), end - 2), Role::critical);
    return;
  }
  const DeviceSample& sample = device.latest;
  region.print_right(end - kUtilization, y, known_text("{}%", sample.utilization_percent));
  region.print_right(end - kTemperature, y, known_text("{} °C", sample.temperature_celsius));
  const auto watts = sample.power_milliwatts ? std::optional(*sample.power_milliwatts * 1e-3) : std::nullopt;
  region.print_right(end - kPower, y, known_text("{:.1f} W", watts));
  const std::string risk = device.assessed_at_ns ? std::string(name_of(device.risk.level)) : "n/a";
  region.print_right(end - kRisk, y, risk, {device.assessed_at_ns ? role_of(device.risk.level) : Role::quiet});
  draw_memory(region.part(2, y + 1, end - 2, 1), device.used_bytes(), device.limit_bytes(), &device.used,
              device.assessed_at_ns ? device.risk.level : RiskLevel::low);
}

void draw_detail(const Region& region, const Content& content, const WatchedDevice& device) {
  const MachineState& machine = content.machine;
  draw_rule(region, 0, printable(watched_title(device, machine)));
  std::size_t y = 1 + draw_evidence(region.below(1), machine, device);
  if (device.latest.driver_reserved_bytes) {
    region.print(0, y++, fmt::format("reserved by the driver: {}", format_bytes(*device.latest.driver_reserved_bytes)));
  }
  if (device.sampled_at_ns && machine.is_old(*device.sampled_at_ns, content.interval_ns)) {
    const auto silence = static_cast<double>(machine.now_ns - *device.sampled_at_ns);
    region.print(0, y, fmt::format("no answer for {}", span_text(silence / kNanosecondsPerSecond)), Role::warning);
  }
}

std::size_t device_row_count(const Content& content, const ViewState& /*state*/) {
  return content.machine.devices.size();
}

void draw_devices(const Region& region, const Content& content, const ViewState& state) {
  const MachineState& machine = content.machine;
  if (!draw_waiting(region, machine)) return;
  const std::size_t end = region.width();
  region.print(0, 0, "DEVICE", Role::heading);
  region.print_right(end - kUtilization, 0, "UTIL", {Role::heading});
  region.print_right(end - kTemperature, 0, "TEMP", {Role::heading});
  region.print_right(end - kPower, 0, "POWER", {Role::heading});
  region.print_right(end - kRisk, 0, "RISK", {Role::heading});
  const std::size_t count = machine.devices.size();
  if (state.selected == kNoRow) {
    std::size_t y = 1;
    for (const WatchedDevice& device : machine.devices) {
      draw_device(region, y, machine, device);
      y += kRowsOfDevice + draw_evidence(region.part(2, y + kRowsOfDevice, end - 2, region.height()), machine, device);
    }
    return;
  }
  const std::size_t details = std::min(kDetailRows + 1, region.height() / 3);
  const std::size_t fitting = std::max<std::size_t>((region.height() - 1 - details) / kRowsOfDevice, 1);
  const std::size_t selected = row_of(state.selected, count);
  const std::size_t first = first_shown(count, selected, fitting);
  std::size_t y = 1;
  for (std::size_t n = first; n < count && n - first < fitting; ++n, y += kRowsOfDevice) {
    draw_device(region, y, machine, machine.devices[n]);
    if (n == selected) region.part(0, y, end, 1).select_row(0);
  }
  if (count != 0) draw_detail(region.below(std::max(y, region.height() - details)), content, machine.devices[selected]);
}

}  // namespace

View devices_view() {
  return {.name = "devices", .title = "Devices", .keys = "", .rows = device_row_count, .draw = draw_devices};
}

}  // namespace tidemark::tui
