#include <array>

#include "collect/machine/device_source.h"
#include "collect/machine/drm_sources.h"
#include "collect/machine/nvml_source.h"

namespace tidemark {

std::vector<OpenedSource> open_device_sources(const SourcePlaces& places) {
  static constexpr std::array kSources = {open_nvml_source, open_amd_source, open_intel_source};
  std::vector<OpenedSource> opened;
  opened.reserve(kSources.size());
  for (const auto& open : kSources) opened.push_back(open(places));
  return opened;
}

}  // namespace tidemark
