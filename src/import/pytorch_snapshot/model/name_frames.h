// Makes of a snapshot's frames the stacks that recordings have.
#pragma once

#include "import/pytorch_snapshot/model/snapshot.h"

namespace tidemark::pytorch {

/// A frame is Python's by its file; native frames keep a line where their file is a source, and an offset in a library
/// becomes the name of a function without one. Of a stack with both, the native frames that called Python code are left
/// out, but for those of autograd's engine: PyTorch puts the interpreter's frames in places that differ from stack to
/// stack. What autograd allocated without Python code gets kBackwardFrame and its node before its native frames. Behind
/// a frame that torch.fx generated stand the program's lines that it was made from.
///
/// Sets ProcessInfo::stack_mode, and the stacks of entries, segments and blocks. Call once.
void name_frames(Snapshot& snapshot);

}  // namespace tidemark::pytorch
