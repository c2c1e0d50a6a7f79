// Whether this process may open the ELF files that recordings name. Servers open none: a recording could name any file
// of the machine.
#pragma once

namespace tidemark {

/// Permanently names native functions of the whole process by their file and address.
void leave_symbol_files_alone();

}  // namespace tidemark
