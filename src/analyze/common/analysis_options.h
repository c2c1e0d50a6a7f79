// The options of an analysis as data, so that commands, pages and notebooks offer the same ones, and their chosen
// values.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/attribution/attribution.h"
#include "analyze/attribution/component_rules.h"
#include "analyze/attribution/filter.h"
#include "analyze/common/block_filter.h"
#include "analyze/common/holders.h"
#include "analyze/common/moment.h"
#include "analyze/plan/simulation.h"
#include "base/result.h"
#include "store/store.h"
#include "store/symbols.h"

namespace tidemark {

/// One option besides those that all analyses share: device, moment and output format.
struct AnalysisOption {
  enum class Kind : std::uint8_t {
    flag,   ///< "yes" or absent
    count,  ///< a whole number, `least` to `most`
    word,   ///< one of the words of `value`
    share,  ///< "1%" or "0.01"
    size,   ///< bytes, more than 0: "1048576", "80GiB"
    limit,  ///< a share or a size: "5%", "100MiB"
    rate,   ///< bytes for each training step: "0", "512", "1KiB/step"
  };
  std::string name;  ///< "min-share": --min-share on the command line
  Kind kind = Kind::count;
  std::string value;    ///< placeholder for the value in help: "N"; for a word, the choices: "peak|traffic"
  std::string help;     ///< one line
  std::string initial;  ///< default value; "": none
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  std::string computed{};  ///< description in help of a default that depends on the recording: "a tenth of the steps"

  /// Whether `text` is a value of this option.
  [[nodiscard]] bool allows(std::string_view text) const;
  /// The allowed values, for messages: "an integer from 0 to 100", "one of peak, traffic".
  [[nodiscard]] std::string expected() const;
};

/// "text|json" as its words.
[[nodiscard]] std::vector<std::string> split_choices(std::string_view choices);

/// The option that most lists have: how many rows to list, 0 = all.
[[nodiscard]] AnalysisOption top_option(std::uint64_t initial, std::string help);

/// Whether other settings of the allocator are replayed for advice: AnalysisOptions::simulate.
[[nodiscard]] AnalysisOption simulate_option();

/// What each row of a list of holders is, `initial` or an owner: AnalysisOptions::holders().
[[nodiscard]] AnalysisOption by_option(const std::string& initial);

/// Option to show the details of one rank only.
[[nodiscard]] AnalysisOption rank_option();

/// The chosen values. The functions below take names of the analysis's own options; values were checked when set.
class AnalysisOptions {
 public:
  std::optional<std::string> device;                  ///< only this one: "cuda:0"
  std::string at = "peak";                            ///< as find_moment() takes it
  std::string format = "text";                        ///< output format of the result
  FilterOptions filter;                               ///< selects the blocks to analyze
  ComponentRules rules = ComponentRules::built_in();  ///< of components
  /// Attribution of this recording, if computed when it was opened (see AttributedStore).
  std::shared_ptr<const Attribution> attribution;
  /// Replays the requests of a recording under other settings; for advice, if that depends on it. nullopt if the replay
  /// is impossible. An empty function: not requested.
  std::function<std::optional<Simulation>(const Store& store, const Symbols& symbols)> simulate;

  /// All options with their initial values.
  explicit AnalysisOptions(const std::vector<AnalysisOption>& options);

  void set(const std::string& name, std::string text) { values_[name] = std::move(text); }

  [[nodiscard]] bool flag(const std::string& name) const { return !values_.at(name).empty(); }
  [[nodiscard]] const std::string& word(const std::string& name) const { return values_.at(name); }
  /// nullopt if the option was not given and has no initial value.
  [[nodiscard]] std::optional<std::uint64_t> given_count(const std::string& name) const;
  [[nodiscard]] std::optional<std::uint64_t> given_size(const std::string& name) const;
  [[nodiscard]] std::optional<std::uint64_t> given_rate(const std::string& name) const;
  /// 0 if there is no value.
  [[nodiscard]] std::uint64_t count(const std::string& name) const { return given_count(name).value_or(0); }
  [[nodiscard]] double share(const std::string& name) const;

  /// `at` in this recording. Fails if it names an unknown mark or step.
  [[nodiscard]] Result<Moment> moment(const Store& store) const { return find_moment(store, at); }
  /// `attribution`, or one that is made now.
  [[nodiscard]] std::shared_ptr<const Attribution> attribute(const Store& store) const;
  /// Blocks selected by `filter`. Fails as choose_blocks() does.
  [[nodiscard]] Result<BlockFilter> chosen_blocks(const Store& store) const;
  /// Holders selected by `filter` and the option of by_option(). Fails as choose_blocks() and OwnerGroups::create() do.
  [[nodiscard]] Result<Holders> holders(const Store& store) const;

 private:
  std::map<std::string, std::string> values_;  // by name; "" = not given
};

}  // namespace tidemark
