#include "query/simulated_advice.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "simulate/simulate.h"

namespace tidemark {

void choose_simulation(const Analysis& analysis, bool automatic, const ProgressFor& progress,
                       const std::function<void(const std::string&)>& failed, AnalysisOptions& chosen,
                       const std::string& python) {
  const bool has_option = std::any_of(analysis.options.begin(), analysis.options.end(),
                                      [](const AnalysisOption& option) { return option.name == "simulate"; });
  if (!has_option) return;
  const std::string& how = chosen.word("simulate");
  if (how == "off" || (how == "auto" && !automatic)) return;
  SimulateOptions what;
  what.search = true;
  what.python = python;
  what.device = chosen.device;
  what.replayer = how == "model" ? Replayer::model : Replayer::pytorch;
  const bool must = how != "auto";
  chosen.simulate = [what, must, progress, failed](const Store& store,
                                                   const Symbols& symbols) -> std::optional<Simulation> {
    auto simulation = simulate(store, symbols, what, progress ? progress(store.path, "Replaying") : Progress());
    if (simulation) return std::move(*simulation);
    if (must) failed(simulation.error().message);
    return std::nullopt;
  };
}

}  // namespace tidemark
