# find_pythons(RESULT): the interpreters of this machine from 3.7 on, one path for each build found: those of
# TIDEMARK_TEST_PYTHONS first, then what is in PATH, then the system's and pyenv's.
set(TIDEMARK_TEST_PYTHONS "" CACHE STRING "More Python interpreters to run the tests of Python stacks with")

# python_fact(PYTHON EXPRESSION RESULT): the output of an expression, "" if the interpreter cannot be run.
function(python_fact python expression result)
  execute_process(COMMAND ${python} -c "import sys, sysconfig; print(${expression})"
                  OUTPUT_VARIABLE output ERROR_QUIET RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT code EQUAL 0)
    set(output "")
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

function(find_pythons result)
  set(candidates ${TIDEMARK_TEST_PYTHONS})
  foreach(name python3 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13 python3.14 python3.15
          python3-dbg python3.13t python3.14t)
    find_program(TIDEMARK_FOUND_${name} ${name})
    mark_as_advanced(TIDEMARK_FOUND_${name})
    if(TIDEMARK_FOUND_${name})
      list(APPEND candidates ${TIDEMARK_FOUND_${name}})
    endif()
  endforeach()
  file(GLOB others /usr/bin/python3 $ENV{HOME}/.pyenv/versions/3.*/bin/python3)
  list(APPEND candidates ${others})

  set(seen "")
  set(found "")
  foreach(candidate IN LISTS candidates)
    # pyenv's shims have any name: the answering interpreter counts.
    python_fact(${candidate} "sys.version + sys.abiflags" version)
    if(version VERSION_GREATER_EQUAL 3.7 AND NOT version IN_LIST seen)
      list(APPEND seen "${version}")
      list(APPEND found ${candidate})
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()
