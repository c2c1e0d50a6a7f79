# Compilation of targets: the optimization, and precompiled headers of libraries, which take most of the time of a small
# source. Sources still include the headers they use, so that they compile without it (TIDEMARK_PCH=OFF).
option(TIDEMARK_PCH "Precompile the headers of libraries" ON)

# Code that runs once and briefly: optimizing it further would only take longer to compile. With sanitizers this is all
# code except that which the fuzz targets run millions of times.
if(TIDEMARK_SANITIZE)
  set(tidemark_quick_options -O0)
  set(tidemark_stage_options -O0)
else()
  set(tidemark_quick_options $<$<CONFIG:Release>:-O1>)
  set(tidemark_stage_options "")
endif()
set(tidemark_thorough_options ${tidemark_stage_options})
if(TIDEMARK_FUZZ)
  set(tidemark_thorough_options -fsanitize=fuzzer-no-link)
endif()

set(tidemark_precompiled_headers
  <algorithm> <array> <bit> <chrono> <cstddef> <cstdint> <functional> <limits> <map> <memory> <optional> <string>
  <string_view> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# tidemark_compile(TARGET KIND), where KIND is
#   input     a stage that reads what others wrote: as the next, but optimized and instrumented where there are fuzz targets
#   stage     a stage whose loops are what a user waits for: optimized, but not with sanitizers, which make that take long
#   results   a stage that works out or words results, with nlohmann-json: optimized a little (-O1), which takes two thirds of the
#             time to compile; commands take as long as with -O3, but for `fragmentation`, which takes an eighth longer
#   test      a test program: not optimized; with GoogleTest, and with nlohmann-json where TARGET links it
function(tidemark_compile target kind)
  set(headers ${tidemark_precompiled_headers})
  set(libraries fmt::fmt)
  set(options ${tidemark_quick_options})
  set(position -fPIC)
  set(json FALSE)
  if(kind STREQUAL "input")
    set(options ${tidemark_thorough_options})
  elseif(kind STREQUAL "stage")
    set(options ${tidemark_stage_options})
  elseif(kind STREQUAL "results")
    set(json TRUE)
  elseif(kind STREQUAL "test")
    set(options -O0)
    set(position -fPIE)  # of programs
    list(APPEND headers <gtest/gtest.h> <gmock/gmock.h>)
    list(APPEND libraries GTest::gtest GTest::gmock)
    get_target_property(linked ${target} LINK_LIBRARIES)
    if("nlohmann_json::nlohmann_json" IN_LIST linked)
      set(json TRUE)
      string(APPEND kind _json)
    endif()
  else()
    message(FATAL_ERROR "tidemark_compile: no kind ${kind}")
  endif()
  if(json)
    list(APPEND headers <nlohmann/json.hpp>)
    list(APPEND libraries nlohmann_json::nlohmann_json)
  endif()
  target_compile_options(${target} PRIVATE ${options})
  if(NOT kind STREQUAL "input")
    set_target_properties(${target} PROPERTIES TIDEMARK_HAS_OWN_OBJECTS TRUE)
  endif()
  if(NOT TIDEMARK_PCH)
    return()
  endif()

  # Targets that use precompiled headers must be compiled like them: the same options, definitions and position
  # independence.
  set(precompiled tidemark_precompiled_${kind})
  if(NOT TARGET ${precompiled})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/${precompiled}.cpp CONTENT "")
    add_library(${precompiled} OBJECT ${PROJECT_BINARY_DIR}/precompiled/${precompiled}.cpp)
    set_target_properties(${precompiled} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${precompiled} PRIVATE ${position} ${options})
    target_link_libraries(${precompiled} PRIVATE ${libraries} tidemark_options)
    target_precompile_headers(${precompiled} PRIVATE ${headers})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      # Without it the file contains its creation time, and ccache considers everything that uses it changed.
      target_compile_options(${precompiled} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()
