// Whether this process may open the ELF files that recordings name. Servers open none: a recording could name any file
// of the machine.
#pragma once

namespace tidemark {

/// From now on native functions are named by their file and address. For the whole process, and for good.
void leave_symbol_files_alone();

}  // namespace tidemark
