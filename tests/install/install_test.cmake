function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The whole list: nothing but what others are meant to use.
file(REMOVE_RECURSE ${PREFIX} ${CONSUMER_BUILD})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
file(GLOB_RECURSE installed RELATIVE ${PREFIX} ${PREFIX}/*)
set(expected
  ${BINDIR}/tidemark ${LIBDIR}/libtidemark_preload.so ${LIBDIR}/libtidemark_phantom.so ${INCLUDEDIR}/tidemark/control.h
  ${LIBDIR}/cmake/tidemark/tidemark-config.cmake ${LIBDIR}/cmake/tidemark/tidemark-config-version.cmake
  ${MANDIR}/man1/tidemark.1 ${DATADIR}/bash-completion/completions/tidemark ${DATADIR}/zsh/site-functions/_tidemark
  ${DATADIR}/fish/vendor_completions.d/tidemark.fish
  ${DATADIR}/tidemark/grafana/tidemark.json ${DATADIR}/tidemark/presets/dp_sgd.py ${DATADIR}/tidemark/presets/model_config.py)
list(SORT installed)
list(SORT expected)
if(NOT installed STREQUAL expected)
  message(FATAL_ERROR "installed: ${installed}\nexpected:  ${expected}")
endif()

run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${CONSUMER_BUILD} -D CMAKE_PREFIX_PATH=${PREFIX}
    -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_CXX_COMPILER=${CXX_COMPILER})
run(${CMAKE_COMMAND} --build ${CONSUMER_BUILD})
foreach(program consumer_c consumer_cpp)
  run(${CONSUMER_BUILD}/${program})
  if(NOT output STREQUAL "not recorded\n")
    message(FATAL_ERROR "unexpected output of ${program}: ${output}")
  endif()
  run(${PREFIX}/${BINDIR}/tidemark run -q -f -o ${CONSUMER_BUILD}/run.tide -- ${CONSUMER_BUILD}/${program})
  if(NOT output STREQUAL "recorded\n")
    message(FATAL_ERROR "unexpected output of ${program} when it is recorded: ${output}")
  endif()
endforeach()
