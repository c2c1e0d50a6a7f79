// Opening a recording for its analyses: with its blocks and their owners, or as an overview with its samples.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "analyze/attribution/attributed_store.h"
#include "analyze/attribution/component_rules.h"
#include "analyze/ledger/samples.h"
#include "analyze/usage/peak_owners.h"
#include "base/result.h"
#include "import/open.h"
#include "store/store.h"

namespace tidemark {

/// Makes the progress of one pass over a file. `doing`: "Reading"; kept by reference. May be empty, and may return
/// none.
using ProgressFor = std::function<Progress(const std::string& path, const char* doing)>;

/// Fails, saying what to do, for what is no regular file.
Result<void> check_recording_path(const std::string& path);

/// The rules in the file, before the built-in ones; these without a file.
Result<ComponentRules> read_rules(const std::string& path);

/// As open_store(), with what the recording knows of its blocks' owners in the stacks.
Result<AttributedStore> open_attributed(const std::string& path, const Progress& progress = {},
                                        const ComponentRules& rules = ComponentRules::built_in());

/// As open_overview(), with its samples. Its load_blocks reads the file again.
Result<SampledOverview> open_sampled_overview(const std::string& path, const ProgressFor& progress,
                                              const ComponentRules& rules = ComponentRules::built_in());

/// The same of blocks that are in memory.
[[nodiscard]] SampledOverview sampled_overview(const std::shared_ptr<const AttributedStore>& store);

/// Reads the recording again for what it knows of its blocks' owners: its stacks then say so, and the result is what
/// each category held at the peak, and advice. Empty where it knows nothing, or has too many events.
[[nodiscard]] PeakOwners take_owners(const std::string& path, const ProgressFor& progress, const ComponentRules& rules,
                                     Overview& overview);

}  // namespace tidemark
