// Simulated allocator settings in words, the same in every report.
#pragma once

#include <string>
#include <vector>

#include "analyze/plan/simulation.h"

namespace tidemark {

/// "the defaults", or the settings as PYTORCH_CUDA_ALLOC_CONF has them.
[[nodiscard]] std::string settings_words(const std::string& settings);

/// The replaying allocator, the error of the replay, its limit, and its uncertainty: one sentence each.
[[nodiscard]] std::vector<std::string> simulation_sentences(const Simulation& simulation);

/// "expandable_segments:True would have saved 9.2 GiB of 18.3 GiB reserved.", of the best run.
[[nodiscard]] std::string best_settings_text(const Simulation& simulation);

/// Whether the best run reserves less than the recorded settings do, or meets more of the requests.
[[nodiscard]] bool best_helps(const Simulation& simulation);

/// The same for reports of something else: who replayed, how exact it is, and which command says more.
[[nodiscard]] std::string cited_simulation_text(const Simulation& simulation);

}  // namespace tidemark
