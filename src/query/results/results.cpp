#include "query/results/results.h"

namespace tidemark {

const DescribedResults& described_results() {
  static const DescribedResults kResults = [] {
    DescribedResults results;
    results.commands.push_back({"leaks", results.types.read<Leaks>("leaks"), true});
    results.shared = {
        {"common",
         "What the results of all analyses have in common. Names and meanings are those of the JSON that commands "
         "write.\n\n"
         "``bytes`` and ``..._bytes`` are bytes, ``..._at_ns`` nanoseconds from the recording's start, ``..._share`` "
         "fractions from\n0 to 1, ``..._count`` numbers of items. ``None``: not known, or not there.\n"}};
    return results;
  }();
  return kResults;
}

}  // namespace tidemark
