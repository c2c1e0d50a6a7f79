#include <vector>

#include "export/format.h"

namespace tidemark {

// A format NAME is the function NAME_format() of NAME.cpp; the macro declares it and adds its result.
#define ADD_FORMAT(name)               \
  extern ExportFormat name##_format(); \
  list.push_back(name##_format())

std::span<const ExportFormat> export_formats() {
  static const std::vector<ExportFormat> kFormats = [] {
    std::vector<ExportFormat> list;
    ADD_FORMAT(pytorch);
    ADD_FORMAT(perfetto);
    ADD_FORMAT(pprof);
    ADD_FORMAT(speedscope);
    ADD_FORMAT(csv);
    ADD_FORMAT(parquet);
    return list;
  }();
  return kFormats;
}

}  // namespace tidemark
