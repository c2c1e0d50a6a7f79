// Asks the program for the names of its modules and for the tensors of its model and optimizers: a Python script that
// runs inside the program, on its main thread between two bytecodes.
#pragma once

namespace tidemark::process {

/// Has the main thread ask soon. Any thread, without the GIL. False where it cannot.
bool schedule_asking() noexcept;

}  // namespace tidemark::process
