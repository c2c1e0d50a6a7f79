// Ends a planned program after its last training step, from inside: nothing that it would do next is run.
#pragma once

namespace tidemark::phantom {

/// Has the program's training steps counted, where the profile asks for it and the program has a Python interpreter:
/// by a hook of PyTorch's on all optimizers, which the main thread sets before it runs another function; in a program
/// without an optimizer, by its own marks (step_names.h). To be called
/// by each call that takes device memory, without locks; all but the first cost a load.
void watch_training_steps();

}  // namespace tidemark::phantom
