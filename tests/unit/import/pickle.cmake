# The snapshot reader against Python's own pickle.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_executable(pickle_dump pickle_dump.cpp)
target_link_libraries(pickle_dump PRIVATE tidemark_import fmt::fmt nlohmann_json::nlohmann_json tidemark_options)
set(snapshots ${tidemark_shared_data}/snapshots)
# By day one of each kind.
set(compared healthy lora_python_stacks oom varlen_expandable)
if(TIDEMARK_NIGHTLY)
  list(APPEND compared lora_native_stacks varlen varlen_max_split_64)
endif()
foreach(name IN LISTS compared)
  tidemark_add_test(pickle_compare_${name}
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/pickle_compare.py $<TARGET_FILE:pickle_dump>
      ${snapshots}/${name}.pickle.xz)
  set_tests_properties(pickle_compare_${name} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
tidemark_add_test(pickle_compare_again
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/pickle_compare.py $<TARGET_FILE:pickle_dump> --again
    ${snapshots}/oom.pickle.xz)
set_tests_properties(pickle_compare_again PROPERTIES SKIP_RETURN_CODE 77)

# What small.pickle holds, by Python's pickler and by PyTorch's own.
tidemark_add_test(pickle_compare_writers
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/pickle_compare.py $<TARGET_FILE:pickle_dump>
    ${PROJECT_SOURCE_DIR}/tests/data/snapshots/small.pickle ${PROJECT_SOURCE_DIR}/tests/data/snapshots/torch_writer.pickle)

tidemark_add_test(pickle_unusual
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/pickle_unusual.py $<TARGET_FILE:pickle_dump>)
tidemark_add_test(pickle_types COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/pickle_types.py $<TARGET_FILE:tidemark>)
tidemark_add_test(pickle_refused
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/pickle_refused.py $<TARGET_FILE:pickle_dump> ${tidemark_sanitized})

tidemark_unit_test(pickle_test COMPUTING pickle_test.cpp LIBS tidemark_import PkgConfig::ZLIB)
target_compile_definitions(pickle_test PRIVATE TIDEMARK_SNAPSHOTS="${PROJECT_SOURCE_DIR}/tests/data/snapshots")
