// Writes a recording and reads it back through the installed package.
#include <tidemark/control.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "analyze/summary.h"
#include "analyze/timeline.h"
#include "report/chart/chart.h"
#include "store/store.h"
#include "trace/writer.h"

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  auto sink = tidemark::open_file_sink(argv[1], true);
  if (!sink) return 1;
  auto writer = tidemark::TraceWriter::create(std::move(*sink), tidemark::ProcessInfo{});
  if (!writer) return 1;
  tidemark::Event event;
  event.address = 0x1000;
  event.size = 4096;
  if (!(*writer)->event(event) || !(*writer)->finish({10, true})) return 1;

  const auto store = tidemark::load_store(argv[1]);
  if (!store) return 1;
  tidemark::Symbols symbols(store->definitions);
  const auto summary = tidemark::analyze_summary(*store, symbols, {});
  for (const tidemark::SummaryDevice& device : summary->devices) {
    std::printf("peak of %s: %llu bytes\n", tidemark::to_string(device.totals.device).c_str(),
                static_cast<unsigned long long>(device.totals.peak_allocated_bytes));
  }
  const std::vector<tidemark::Timeline> timelines = {*tidemark::analyze_timeline(*store, symbols, {})};
  return tidemark::draw_chart(timelines, tidemark::ChartFormat::png).ok() ? 0 : 1;
}
