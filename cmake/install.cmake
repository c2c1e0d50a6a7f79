# Files that `cmake --install` installs, except the program with its manual page and completion scripts, and the
# preloaded library: the public API, which is include/tidemark/, and programs that it starts. With
# find_package(tidemark), a program in C or C++ links tidemark::control and includes <tidemark/control.h>; the functions
# themselves are in the preloaded library. One in C++17 links tidemark::tidemark, the library of src/cpp_api, and
# includes the other headers. Of these, a wheel contains only control.h.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tidemark)
add_library(tidemark_control INTERFACE)
set_target_properties(tidemark_control PROPERTIES EXPORT_NAME control)
target_include_directories(tidemark_control INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS tidemark_control EXPORT tidemark)
install(EXPORT tidemark NAMESPACE tidemark:: FILE tidemark-config.cmake DESTINATION ${package_dir} COMPONENT development)
write_basic_package_version_file(tidemark-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tidemark-config-version.cmake DESTINATION ${package_dir} COMPONENT development)

install(FILES include/tidemark/control.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tidemark)
if(TARGET tidemark_shared)
  install(DIRECTORY include/tidemark DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
          PATTERN control.h EXCLUDE)
endif()

# The programs of `tidemark sweep --preset`; the program finds them at ../share in the build folder too.
foreach(program dp_sgd.py model_config.py)
  configure_file(presets/${program} ${PROJECT_BINARY_DIR}/share/tidemark/presets/${program} COPYONLY)
  install(FILES presets/${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/tidemark/presets)
endforeach()

# Printed by `tidemark schema`.
install(DIRECTORY share/schema share/types DESTINATION ${CMAKE_INSTALL_DATADIR}/tidemark)

# For clusters: docs/deployment.md.
install(DIRECTORY share/grafana share/kubernetes share/prometheus DESTINATION ${CMAKE_INSTALL_DATADIR}/tidemark)
install(DIRECTORY share/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/tidemark USE_SOURCE_PERMISSIONS)

if(TIDEMARK_PORTABLE)  # of the libraries that are linked in
  install(DIRECTORY $ENV{TIDEMARK_PORTABLE_ROOT}/licences DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
