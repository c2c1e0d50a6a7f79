# tidemark_embed(TARGET FILE NAME [NAMESPACE]): FILE, a text in the current folder, becomes the array of characters NAME of TARGET, with a
# zero at its end, in the namespace tidemark or tidemark::NAMESPACE. What uses it declares it:
#   extern const char kReplayScript[];
# The target tidemark_embedded makes all sources that the build makes, without compiling anything: for tools that read them.
add_custom_target(tidemark_embedded)

function(tidemark_embed target file name)
  set(namespace tidemark)
  if(ARGC GREATER 3)
    string(APPEND namespace ::${ARGV3})
  endif()
  set(input ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake)
  string(MAKE_C_IDENTIFIER ${file} identifier)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${identifier}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D INPUT=${input} -D NAMESPACE=${namespace} -D NAME=${name} -D OUTPUT=${output} -P ${script}
    DEPENDS ${input} ${script} COMMENT "Embedding ${file}" VERBATIM)
  # A separate target, so that it can be made without the libraries that the target links.
  add_custom_target(${target}_${identifier} DEPENDS ${output})
  add_dependencies(tidemark_embedded ${target}_${identifier})
  add_dependencies(${target} ${target}_${identifier})
  target_sources(${target} PRIVATE ${output})
endfunction()
