# What our own tests, benchmarks and examples are built with. Consumers never see this file.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# A warning is an error with the compilers that CI runs; others may know warnings that nobody has seen.
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.") OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\."))
  set(werror_default ON)
else()
  set(werror_default OFF)
endif()
option(WENGERT_WERROR "Treat warnings in our own targets as errors" ${werror_default})
set(WENGERT_SANITIZE "" CACHE STRING "Sanitizers for our own targets: address,undefined or thread")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

set(CMAKE_CXX_EXTENSIONS OFF)

add_library(wengert_development INTERFACE)
target_link_libraries(wengert_development INTERFACE wengert::wengert)
target_compile_options(wengert_development INTERFACE -Wall -Wextra -Wconversion
                       "$<$<BOOL:${WENGERT_WERROR}>:-Werror>")
# g++ 12 sees overlapping copies in plain std::string concatenation (GCC bug 105651).
target_compile_options(wengert_development INTERFACE
                       "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>")
if(WENGERT_NATIVE)
  target_link_libraries(wengert_development INTERFACE wengert::native)
endif()
if(WENGERT_SANITIZE)
  target_compile_options(wengert_development INTERFACE -fsanitize=${WENGERT_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer -g1)
  # clang also counts conversions of float to integer, which xsimd applies to lanes that it then discards.
  if(WENGERT_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(wengert_development INTERFACE -fno-sanitize=float-cast-overflow)
  endif()
  target_link_options(wengert_development INTERFACE -fsanitize=${WENGERT_SANITIZE})
endif()

# The kernels that take longest to compile, once for all our programs.
add_library(kernel_instances STATIC EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tests/support/kernel_instances.cpp")
target_compile_definitions(kernel_instances PUBLIC WENGERT_EXTERN_KERNELS)
target_link_libraries(kernel_instances PUBLIC wengert_development)
# clang's checks of addresses as calls: inline they double the compile time of unrolled tiles.
if(WENGERT_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(kernel_instances PRIVATE "SHELL:-mllvm -asan-instrumentation-with-call-threshold=50")
endif()

# wengert_quick(TARGET): what need not be fast is compiled at -O1, which takes half as long as -O3.
function(wengert_quick target)
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
    target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O1>")
  endif()
endfunction()

# wengert_precompiled(TARGET full|quick): the target finds the library parsed already, in one of two precompiled
# headers; "quick" is compiled at -O1.
function(wengert_precompiled target level)
  target_link_libraries(${target} PRIVATE kernel_instances $<TARGET_NAME_IF_EXISTS:GTest::gtest>)
  # g++ forgets in a precompiled header which warnings are off in it. (Examples and benchmarks have them on.)
  target_compile_options(${target} PRIVATE
                         "$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized;-Wno-maybe-uninitialized>")
  if(level STREQUAL "quick")
    wengert_quick(${target})
  endif()
  if(NOT target STREQUAL "precompiled_${level}")
    target_precompile_headers(${target} REUSE_FROM precompiled_${level})
  endif()
endfunction()

find_package(GTest QUIET)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp" CONTENT "// The target is its header.\n")
foreach(level IN ITEMS full quick)
  add_library(precompiled_${level} OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp")
  target_precompile_headers(precompiled_${level} PRIVATE "$<$<TARGET_EXISTS:GTest::gtest>:<gtest/gtest.h$<ANGLE-R>>"
                            <wengert/wengert.hpp>)
  wengert_precompiled(precompiled_${level} ${level})
endforeach()

# The rows of tests/cases/ register themselves, so a program that includes a header of theirs gets all of them.
file(GLOB row_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cases/*.cpp")
add_library(operator_rows OBJECT EXCLUDE_FROM_ALL ${row_files})
target_include_directories(operator_rows PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(operator_rows PUBLIC wengert_development)
wengert_precompiled(operator_rows full)

# wengert_executable(NAME SOURCES... [LINK targets...]) builds one of our programs.
function(wengert_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  set(sources ${arg_UNPARSED_ARGUMENTS})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE kernel_instances ${arg_LINK})
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" rows REGEX "^#include \"cases/" LIMIT_COUNT 1)
    if(rows)
      target_link_libraries(${name} PRIVATE operator_rows)
      break()
    endif()
  endforeach()
endfunction()

# libtorch is an oracle of the tests and a peer of the benchmarks, never a dependency of the library.
# Its package file reports what it finds even when asked to be quiet. (Debian's libtorch 1.13 does not compile
# under clang++ 14 as C++20, hence the clang presets go without it.)
macro(wengert_quiet_torch)
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)
  find_package(Torch QUIET)
  unset(CMAKE_MESSAGE_LOG_LEVEL)
endmacro()
