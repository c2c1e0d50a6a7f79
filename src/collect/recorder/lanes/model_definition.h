// The `model` definition (collect/ring/layout.h): what modules are called, and where tensors are.
#pragma once

#include <cstdint>
#include <vector>

#include "collect/recorder/lanes/definition_fields.h"
#include "collect/recorder/lanes/nn_modules.h"
#include "trace/recording_writer.h"

namespace tidemark {

/// What the reader of the lane writes, because it knows the clock.
struct ModelTensors {
  std::uint64_t ticks = 0;
  std::vector<ModelTensor> tensors;  ///< without time
};

/// Takes in the names. Everything up to an entry that makes no sense; `fields.ok` is false then.
ModelTensors read_model(DefinitionFields& fields, NnModules& modules, RecordingWriter& writer);

}  // namespace tidemark
