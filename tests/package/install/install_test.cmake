function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The whole list: only files that others may use.
file(REMOVE_RECURSE ${PREFIX} ${CONSUMER_BUILD})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
file(GLOB_RECURSE installed RELATIVE ${PREFIX} ${PREFIX}/*)
set(expected
  ${BINDIR}/tidemark ${LIBDIR}/libtidemark_preload.so ${LIBDIR}/libtidemark_phantom.so ${INCLUDEDIR}/tidemark/control.h
  ${LIBDIR}/cmake/tidemark/tidemark-config.cmake ${LIBDIR}/cmake/tidemark/tidemark-config-version.cmake
  ${MANDIR}/man1/tidemark.1 ${DATADIR}/bash-completion/completions/tidemark ${DATADIR}/zsh/site-functions/_tidemark
  ${DATADIR}/fish/vendor_completions.d/tidemark.fish
  ${DATADIR}/tidemark/presets/dp_sgd.py ${DATADIR}/tidemark/presets/model_config.py)
file(GLOB schemas RELATIVE ${SHARE} ${SHARE}/schema/*.json ${SHARE}/types/results.d.ts ${SHARE}/grafana/*.json ${SHARE}/kubernetes/*.yaml
  ${SHARE}/kubernetes/*/*.yaml ${SHARE}/prometheus/*.yaml ${SHARE}/slurm/*.sh)
foreach(schema ${schemas})
  list(APPEND expected ${DATADIR}/tidemark/${schema})
endforeach()
if(API_VERSION)
  string(REGEX MATCH "^[0-9]+[.][0-9]+" minor "${API_VERSION}")
  list(APPEND expected ${LIBDIR}/libtidemark.so ${LIBDIR}/libtidemark.so.${minor} ${LIBDIR}/libtidemark.so.${API_VERSION}
    ${LIBDIR}/cmake/tidemark/tidemark-config-release.cmake)
  foreach(header error export memory_manager monitors performance_monitor prefetch_loader profiler recording)
    list(APPEND expected ${INCLUDEDIR}/tidemark/${header}.h)
  endforeach()
endif()
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

# The C++ API: examples/cpp as a project of its own, as docs/cpp-api.md shows it.
if(NOT API_VERSION)
  return()
endif()
set(examples ${CONSUMER_BUILD}/examples)
run(${CMAKE_COMMAND} -E env CMAKE_PREFIX_PATH=${PREFIX}:${TORCH}
    ${CMAKE_COMMAND} -S ${EXAMPLES} -B ${examples} -D CMAKE_CXX_COMPILER=${CXX_COMPILER}
    -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D WITHOUT_CUDA_TOOLKIT=ON
    -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=)  # compiled in a third of the time
message(STATUS "${output}")  # names the omitted examples
run(${CMAKE_COMMAND} --build ${examples})
if(TORCH)
  foreach(program cuda_training libtorch_training)  # tests/integration/phantom/test_examples.py runs them
    if(NOT EXISTS ${examples}/${program})
      message(FATAL_ERROR "${TORCH} has all that ${program} needs, and it was left out")
    endif()
  endforeach()
endif()
run(${examples}/training ${CONSUMER_BUILD}/training.tide ${CONSUMER_BUILD}/training.json)
if(NOT output MATCHES "200 steps, loss [0-9.]+ on average")
  message(FATAL_ERROR "unexpected output of the example: ${output}")
endif()
run(${PREFIX}/${BINDIR}/tidemark dump ${CONSUMER_BUILD}/training.tide)
foreach(name epoch step forward)
  if(NOT output MATCHES "${name}")
    message(FATAL_ERROR "the example's recording has no ${name}: ${output}")
  endif()
endforeach()
# Headers in C++17 and the newest standard, with nothing but the installed library beside.
foreach(standard 17 20 23)
  run(${CXX_COMPILER} -std=c++${standard} -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I ${PREFIX}/${INCLUDEDIR} ${EXAMPLES}/training.cpp)
endforeach()
