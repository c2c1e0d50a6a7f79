#include "analyze/common/reduced_peak.h"

#include <algorithm>

#include "analyze/common/totals.h"

namespace tidemark {
namespace {

struct Change {
  std::uint64_t change_count = 0;
  std::uint64_t bytes = 0;
};

/// How much is absent, going forward in time.
class FreedEarlier {
 public:
  FreedEarlier(const Store& store, const std::vector<EarlierFree>& earlier_frees) {
    begins_.reserve(earlier_frees.size());
    ends_.reserve(earlier_frees.size());
    for (const EarlierFree& earlier_free : earlier_frees) {
      const std::uint64_t size = earlier_free.size(store);
      begins_.push_back({earlier_free.from, size});
      ends_.push_back({earlier_free.to, size});
    }
    const auto earlier = [](const Change& left, const Change& right) { return left.change_count < right.change_count; };
    std::sort(begins_.begin(), begins_.end(), earlier);
    std::sort(ends_.begin(), ends_.end(), earlier);
  }

  std::uint64_t at(std::uint64_t change_count) {
    for (; begin_ < begins_.size() && begins_[begin_].change_count < change_count; ++begin_)
      bytes_ += begins_[begin_].bytes;
    for (; end_ < ends_.size() && ends_[end_].change_count < change_count; ++end_) bytes_ -= ends_[end_].bytes;
    return bytes_;
  }

 private:
  std::vector<Change> begins_;
  std::vector<Change> ends_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

ReducedPeak reduced_peak(const Store& store, std::size_t device, const std::vector<EarlierFree>& earlier_frees) {
  ReducedPeak peak;
  FreedEarlier freed_earlier(store, earlier_frees);
  walk_totals(store, [&](const DeviceTotals& totals) {
    if (totals.device != device) return;
    const std::uint64_t bytes =
        totals.allocated_bytes - std::min(totals.allocated_bytes, freed_earlier.at(totals.change_count));
    if (bytes <= peak.bytes) return;
    peak.bytes = bytes;
    peak.at_ns = totals.time_ns;
  });
  return peak;
}

}  // namespace tidemark
