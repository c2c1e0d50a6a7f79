// Selects blocks by their attribution.
#pragma once

#include <string>
#include <string_view>

#include "analyze/attribution/attribution.h"
#include "analyze/common/block_filter.h"
#include "base/result.h"
#include "store/store.h"

namespace tidemark {

/// Required properties of blocks; empty: no requirement.
struct FilterOptions {
  std::string module;  ///< as module_matches() takes it
  std::string component;
  std::string category;
  std::string phase;

  [[nodiscard]] bool empty() const { return module.empty() && component.empty() && category.empty() && phase.empty(); }
};

/// "blocks with category activation and module layers.3.*"; empty without a filter.
[[nodiscard]] std::string filter_text(const FilterOptions& options);

/// Whether `pattern` ("layers.3.*", with * ? and [...] as in a shell, which also match dots) matches the path,
/// consecutive parts of it, or the path of a module that contains it.
[[nodiscard]] bool module_matches(const std::string& path, const std::string& pattern);

/// Fails if no block matches because the recording lacks the data, or if no module matches.
[[nodiscard]] Result<BlockFilter> choose_blocks(const Store& store, const Attribution& attribution,
                                                const FilterOptions& options);

}  // namespace tidemark
