# Eigen and xsimd, installed or (only when asked) downloaded; zlib when it is there.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(ZLIB QUIET)

function(wengert_missing what debian)
  message(FATAL_ERROR
    "wengert needs ${what}, which was not found.\n"
    "  Debian and Ubuntu:  apt-get install ${debian}\n"
    "  elsewhere:          install it and point CMAKE_PREFIX_PATH at it\n"
    "  or download it:     configure with -DWENGERT_FETCH_DEPENDENCIES=ON")
endfunction()

# Only the headers of a download are used: its own targets, tests and install rules stay out of this build.
macro(wengert_fetch name target repository tag include_dir)
  include(FetchContent)
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON
                       SOURCE_SUBDIR no-build-wanted)
  FetchContent_MakeAvailable(${name})
  add_library(${target} INTERFACE IMPORTED)
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${${name}_SOURCE_DIR}${include_dir}")
endmacro()

if(NOT TARGET Eigen3::Eigen)
  find_package(Eigen3 3.4 QUIET NO_MODULE)
  if(NOT TARGET Eigen3::Eigen)
    if(NOT WENGERT_FETCH_DEPENDENCIES)
      wengert_missing("Eigen 3.4" libeigen3-dev)
    endif()
    wengert_fetch(eigen Eigen3::Eigen https://gitlab.com/libeigen/eigen.git 3.4.0 "")
  endif()
endif()

include("${CMAKE_CURRENT_LIST_DIR}/wengertXsimd.cmake")
if(NOT TARGET wengert::xsimd)
  if(NOT WENGERT_FETCH_DEPENDENCIES)
    wengert_missing("xsimd 8.1 or later" libxsimd-dev)
  endif()
  wengert_fetch(xsimd wengert::xsimd https://github.com/xtensor-stack/xsimd.git 8.1.0 "/include")
endif()
