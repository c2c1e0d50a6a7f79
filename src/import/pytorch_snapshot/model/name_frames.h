// Makes of a snapshot's frames the stacks that recordings have.
#pragma once

#include "import/pytorch_snapshot/model/snapshot.h"

namespace tidemark::pytorch {

/// A frame is Python's by its file; native frames keep a line if their file is a source, and an offset in a library
/// becomes the name of a function without one. In a stack with both kinds, native frames that called Python code are
/// left out, except autograd's engine: PyTorch puts the interpreter's frames in places that differ between stacks.
/// Allocations of autograd without Python code get kBackwardFrame and their node before their native frames. After a
/// frame that torch.fx generated come the lines of the program from which it was generated.
///
/// Sets ProcessInfo::stack_mode, and the stacks of entries, segments and blocks. Call once.
void name_frames(Snapshot& snapshot);

}  // namespace tidemark::pytorch
