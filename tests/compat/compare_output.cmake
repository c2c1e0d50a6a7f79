# cmake -DCOMMAND=a;b;c -DEXPECTED=file -P compare_output.cmake: fails unless the command prints exactly the file.
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE output RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${COMMAND} ended with ${status}")
endif()
file(READ ${EXPECTED} expected)
if(NOT output STREQUAL expected)
  message(FATAL_ERROR "${COMMAND} printed something else than ${EXPECTED}:\n${output}")
endif()
