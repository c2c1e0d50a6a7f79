# `cmake --install` with TIDEMARK_BUILT: installs that build unchanged.
foreach(component Unspecified python)
  install(CODE "execute_process(COMMAND ${CMAKE_COMMAND} --install ${TIDEMARK_BUILT} --component ${component} --strip
    --prefix \${CMAKE_INSTALL_PREFIX} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
endforeach()
