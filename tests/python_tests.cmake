# Tests in Python that run PyTorch programs. Names end in the version of the PyTorch.
set(TIDEMARK_TEST_PYTHONS "" CACHE STRING "Python interpreters that have PyTorch, to test recording with")
set(TIDEMARK_PHANTOM_PYTHONS "" CACHE STRING
  "Python interpreters with a PyTorch for CUDA, which may lack NVIDIA's libraries: to test the phantom GPU with, beside those above")

# The version of this interpreter's PyTorch, which is not imported: that takes seconds.
function(tidemark_torch_version result python)
  execute_process(
    COMMAND ${python} -c "import importlib.metadata; print(importlib.metadata.version('torch').split('+')[0])"
    OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${result} ${version} PARENT_SCOPE)
endfunction()

# tidemark_python_tests(PREFIX PYTHONS [COMPILER] [variable=value...] DRIVERS driver...): each driver, a test_*.py of this folder, once
# with each of the interpreters. COMPILER: their programs compile, shard parameters, or are to start as a user's do; the others start
# in half of the time, by tests/startup/no_compiler.
function(tidemark_python_tests prefix pythons)
  cmake_parse_arguments(PARSE_ARGV 2 arg "COMPILER" "" "DRIVERS")
  set(startup ${PROJECT_SOURCE_DIR}/tests/startup)
  if(NOT arg_COMPILER)
    string(APPEND startup /no_compiler)
  endif()
  foreach(python IN LISTS pythons)
    tidemark_torch_version(version ${python})
    foreach(driver IN LISTS arg_DRIVERS)
      string(REGEX REPLACE "^test_(.*)[.]py$" "\\1" name ${driver})
      set(test ${prefix}.${name}.${version})
      tidemark_add_test(${test} COMMAND ${python} -W error::ResourceWarning ${CMAKE_CURRENT_SOURCE_DIR}/${driver} -v)
      set_tests_properties(
        ${test} PROPERTIES LABELS "torch;integration" TIMEOUT 1800
        COST 30  # seconds: the longest tests start first
        ENVIRONMENT
        "${tidemark_test_bytecode};PYTHONPATH=${startup};TIDEMARK=$<TARGET_FILE:tidemark>;TIDEMARK_PYTHON=${python};${arg_UNPARSED_ARGUMENTS}")
    endforeach()
  endforeach()
endfunction()

# The interpreters whose PyTorch is built for CUDA. Without loading it, which takes seconds.
function(tidemark_cuda_pythons result)
  set(found "")
  foreach(python IN LISTS ARGN)
    execute_process(
      COMMAND ${python} -c "import importlib.util as u, pathlib; assert pathlib.Path(u.find_spec('torch').origin).with_name('lib').joinpath('libtorch_cuda.so').exists()"
      RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed)
      list(APPEND found ${python})
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()
