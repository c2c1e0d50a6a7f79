// Ends a planned program after its last training step, from inside: nothing that it would do next is run.
#pragma once

namespace tidemark::phantom {

/// Has the program's training steps counted, where the profile asks for it: by a hook of PyTorch's on all optimizers,
/// which the main thread sets before it runs another function of Python's; in a program without Python or without an
/// optimizer of torch.optim, by its own marks (step_names.h). To be called by each call that takes device memory,
/// without locks; all but the first cost a load.
void watch_training_steps();

}  // namespace tidemark::phantom
