// Small deterministic recordings, for the golden tests.
#pragma once

#include <string>

namespace tidemark::testing {

/// Writes into `folder` training.tide, rank0.tide, rank1.tide, job.rank*.tide, leaking.tide, layers.tide,
/// retaining.tide, shared_gpu.tide, fragmenting.tide, held_peak.tide, devices.tide, hostile.tide, marked.tide,
/// empty.tide, killed.tide and the recordings of host_recording.h; files that are not recordings: notes.txt and
/// damaged.tide; and models: model.safetensors, adapter/ and cut.safetensors.
void write_golden_recordings(const std::string& folder);

}  // namespace tidemark::testing
