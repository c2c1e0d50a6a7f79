#include "collect/machine/device_source.h"

namespace tidemark {

// The source NAME is opened by open_NAME_source() of NAME_source.cpp; the macro declares it and adds its result.
#define ADD_SOURCE(name)                                                \
  extern OpenedSource open_##name##_source(const SourcePlaces& places); \
  opened.push_back(open_##name##_source(places))

std::vector<OpenedSource> open_device_sources(const SourcePlaces& places) {
  std::vector<OpenedSource> opened;
  ADD_SOURCE(nvml);
  ADD_SOURCE(amd);
  ADD_SOURCE(intel);
  return opened;
}

}  // namespace tidemark
