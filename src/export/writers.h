// The writers that formats.cpp lists; see ExportFormat::write.
#pragma once

#include "export/format.h"

namespace tidemark {

/// What each device had allocated, active and reserved over time as counters, and failed requests: a Perfetto trace.
Result<void> write_perfetto(const Store& store, Symbols& symbols, const ExportOptions& options,
                            const ByteOutput& output, const Progress& progress);

/// What was allocated at a moment ("inuse") and in all ("alloc") by stack: a gzipped profile.proto.
Result<void> write_pprof(const Store& store, Symbols& symbols, const ExportOptions& options, const ByteOutput& output,
                         const Progress& progress);

/// What was allocated at a moment, as a profile for each device: https://www.speedscope.app/file-format-schema.json.
Result<void> write_speedscope(const Store& store, Symbols& symbols, const ExportOptions& options,
                              const ByteOutput& output, const Progress& progress);

/// Allocations, frees and segments with what is left at the end: a pickle as torch.cuda.memory._snapshot() gives it.
Result<void> write_pytorch(const Store& store, Symbols& symbols, const ExportOptions& options, const ByteOutput& output,
                           const Progress& progress);

/// Every block, one a line (RFC 4180, with \n line ends). Unknown values are empty fields.
Result<void> write_csv(const Store& store, Symbols& symbols, const ExportOptions& options, const ByteOutput& output,
                       const Progress& progress);

}  // namespace tidemark
