# One interface target that all targets of this project link: warnings, and the sanitizers of the preset.
option(TIDEMARK_WERROR "Treat warnings as errors: for development, with the compilers that CONTRIBUTING.md names" ON)
add_library(tidemark_options INTERFACE)
target_compile_options(tidemark_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual -Wnon-virtual-dtor -Woverloaded-virtual
  -Wformat=2 -Wimplicit-fallthrough $<$<BOOL:${TIDEMARK_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns about std::string's own copies (GCC bug 105329).
  target_compile_options(tidemark_options INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC collects its own garbage only above 2 GB (the unit is KiB): an eighth less time to compile, for up to a third
  # more memory.
  target_compile_options(tidemark_options INTERFACE --param=ggc-min-heapsize=2000000)
endif()
if(TIDEMARK_SANITIZE)
  target_compile_options(tidemark_options INTERFACE -fsanitize=${TIDEMARK_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(tidemark_options INTERFACE -fsanitize=${TIDEMARK_SANITIZE})
  if(TIDEMARK_SANITIZE MATCHES "undefined")
    # A sixth of the compile time, for errors that AddressSanitizer finds too: it ends a program that reads through a
    # null pointer, past an object's end, or through an invalid virtual table.
    target_compile_options(tidemark_options INTERFACE -fno-sanitize=null,object-size,vptr)
    # Another sixth: only code that reads untrusted bytes could read an object that does not exist.
    set(has_own_objects $<BOOL:$<TARGET_PROPERTY:TIDEMARK_HAS_OWN_OBJECTS>>)
    target_compile_options(tidemark_options INTERFACE $<${has_own_objects}:-fno-sanitize=alignment>)
  endif()
endif()
