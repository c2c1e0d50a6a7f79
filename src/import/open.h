// Opens any file that the reading commands accept: recordings, and files of other tools. The first bytes of a file
// determine its format.
#pragma once

#include <future>
#include <string>
#include <utility>

#include "base/result.h"
#include "store/store.h"

namespace tidemark {

/// As load_overview() and load_store() for recordings; here for files of every format of the list in open.cpp. Files of
/// an unknown format fail as a recording does.
Result<Overview> open_overview(const std::string& path, const Progress& progress = {},
                               const SampleConsumer& samples = {});
Result<Store> open_store(const std::string& path, const Progress& progress = {});

/// Opens both files as open_store() does, the first one on a separate thread, and passes each store to `reduce` on the
/// thread that opened it, so that only the reduced data has to fit into memory together. `reduce(Store&&)` is called
/// from both threads, and returns a Result. Returns the two results.
template <typename Reduce>
auto open_both(const std::string& first, const std::string& second, const Reduce& reduce,
               const Progress& first_progress = {}, const Progress& second_progress = {}) {
  using Reduced = decltype(reduce(std::declval<Store>()));
  const auto load = [&reduce](const std::string& path, const Progress& progress) -> Reduced {
    Result<Store> store = open_store(path, progress);
    if (!store) return store.error();
    return reduce(std::move(*store));
  };
  auto loading = std::async(std::launch::async, load, first, first_progress);
  Reduced other = load(second, second_progress);
  return std::pair<Reduced, Reduced>(loading.get(), std::move(other));
}

}  // namespace tidemark
