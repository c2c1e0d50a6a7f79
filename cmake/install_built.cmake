# What `cmake --install` does with TIDEMARK_BUILT: installs that build, as it is.
foreach(component Unspecified python)
  install(CODE "execute_process(COMMAND ${CMAKE_COMMAND} --install ${TIDEMARK_BUILT} --component ${component} --strip
    --prefix \${CMAKE_INSTALL_PREFIX} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
endforeach()
