// Leaks in words, for text and HTML alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/leaks/leaks.h"
#include "analyze/leaks/objects.h"
#include "report/common/terminal.h"

namespace tidemark {

/// "Leak: 5 call sites grow by 64.0 KiB per step, 4 of them in a retained autograd graph", "No leak: ...", or
/// "Insufficient data: ..." with the reason.
[[nodiscard]] std::string leak_verdict(const Leaks& leaks);

/// "Host memory of the process grows by 9.0 MiB per second, from …; tensors on the CPU are 1.0 KiB of it".
[[nodiscard]] std::string host_growth_text(const HostGrowth& growth);
/// Its usual causes.
[[nodiscard]] std::string host_growth_causes(const HostGrowth& growth);

/// The text before LeakObject::last: "An autograd graph is retained, likely by the tensor that it ends in". Not for a
/// call site.
[[nodiscard]] std::string leak_object_text(const LeakObject& object);

/// Text for LeakObject::perhaps_input.
inline constexpr const char* kPerhapsInput = "perhaps an input of the forward passes above, retained with them";

/// Text above the list of Leaks::kept_over_steps.
inline constexpr const char* kKeptOverSteps = "Not a leak, but kept for several steps and then freed together";

/// The listed leaks of an object (index into Leaks::objects), fastest first.
[[nodiscard]] std::vector<const LeakSite*> leaks_of(const Leaks& leaks, std::size_t object);

/// "2 smaller leaks, 768 B per step in total; `--min-growth 0` lists them"; empty without any.
[[nodiscard]] std::string small_leaks_text(const Leaks& leaks);

/// "Training steps: 60, from 1.2 s to 6.7 s; a step starts at ...\n"; empty without steps.
[[nodiscard]] std::string leak_steps(const Leaks& leaks);

/// The reason why growth is not a leak; empty if it is one.
[[nodiscard]] std::string growth_text(const Growth& growth);

/// What to do about leaks that match the same mistake.
struct LeakFix {
  std::string fix;    ///< "__main__.losses: keep loss.item() or loss.detach()"
  std::string cause;  ///< "likely cause: losses are kept with their autograd graphs"
  double bytes_per_step = 0;
  std::uint32_t every_steps = 0;  ///< as in Growth; 0 if the leaks differ in it
  bool is_known = true;           ///< whether they match one; otherwise the cause names what usually holds such memory
};
/// Of the listed objects, fastest first. Leaks that match no mistake are included for Python programs.
[[nodiscard]] std::vector<LeakFix> leak_fixes(const Leaks& leaks);
/// "Fix: ..." and its cause; several are numbered, each with what it is about. Ends with a newline; empty without any.
[[nodiscard]] std::string leak_fixes_text(const Leaks& leaks);
/// The verdict, the call site that grows fastest, and the fixes: the leak in a few lines.
[[nodiscard]] std::string leak_text(const Leaks& leaks, const Terminal& terminal);
/// The command that runs the program again and names what holds the leaks that match no mistake; std::nullopt if there
/// are none, or if the program is not known.
[[nodiscard]] std::optional<std::string> find_holders_command(const Leaks& leaks);

/// Bytes per step, which may be fractions: "51.2 B".
[[nodiscard]] std::string rate_text(double bytes);
/// "64.0 KiB per step", or "112.0 KiB every 10 steps": of `bytes_per_step`, a rate.
[[nodiscard]] std::string step_rate_text(double bytes_per_step, std::uint32_t every_steps);

}  // namespace tidemark
