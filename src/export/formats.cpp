#include "export/format.h"
#include "export/writers.h"

namespace tidemark {

std::span<const ExportFormat> export_formats() {
  static constexpr ExportFormat kFormats[] = {
      {"pytorch", "a memory snapshot, for https://pytorch.org/memory_viz", ".snapshot.pickle", true, false,
       write_pytorch},
      {"perfetto", "memory over time, for https://ui.perfetto.dev", ".pftrace", true, false, write_perfetto},
      {"pprof", "stacks at a moment and in all, for `go tool pprof`", ".pb.gz", true, true, write_pprof},
      {"speedscope", "stacks at a moment, for https://www.speedscope.app", ".speedscope.json", false, true,
       write_speedscope},
      {"csv", "every block, one a line", ".blocks.csv", false, false, write_csv},
  };
  return kFormats;
}

}  // namespace tidemark
