# What `cmake --install` puts where, apart from the program and the preloaded library: the manual page, and the stages that
# read recordings as a CMake package. With find_package(tidemark), a program links tidemark::store, tidemark::analyze, … and
# includes "store/store.h" as the sources here do.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tidemark)
foreach(stage base allocator trace store analyze report)
  set_target_properties(tidemark_${stage} PROPERTIES EXPORT_NAME ${stage})
  target_include_directories(tidemark_${stage} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tidemark> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS tidemark_${stage} EXPORT tidemark ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # Without the headers that need cairo or nlohmann-json: they are the reports' own.
  install(DIRECTORY src/${stage} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tidemark
          FILES_MATCHING PATTERN "*.h" PATTERN "chart" EXCLUDE PATTERN "json/parts.h" EXCLUDE
                          PATTERN "json/objects.h" EXCLUDE PATTERN "html" EXCLUDE)
endforeach()
install(TARGETS tidemark_options EXPORT tidemark)  # empty for users: warnings do not travel

configure_package_config_file(cmake/tidemark-config.cmake.in tidemark-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tidemark-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tidemark-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/tidemark-config-version.cmake
        DESTINATION ${package_dir})
install(EXPORT tidemark NAMESPACE tidemark:: FILE tidemark-targets.cmake DESTINATION ${package_dir})

install(FILES include/tidemark/control.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tidemark)
install(FILES share/man/tidemark.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
