# Defines wengert::xsimd, the headers of an xsimd that is installed, or that the surrounding project brings.
# Only the headers are taken: the package file of Debian's xsimd 8.1 also links a library that does not exist.

if(NOT TARGET wengert::xsimd)
  if(NOT TARGET xsimd)
    find_package(xsimd QUIET)
  endif()
  # A version is known of an installed xsimd only. No version range: the package's rule is "same major".
  if(TARGET xsimd AND NOT (DEFINED xsimd_VERSION AND xsimd_VERSION VERSION_LESS 8.1))
    get_target_property(wengert_xsimd_include xsimd INTERFACE_INCLUDE_DIRECTORIES)
    add_library(wengert::xsimd INTERFACE IMPORTED)
    set_target_properties(wengert::xsimd PROPERTIES
                          INTERFACE_INCLUDE_DIRECTORIES "${wengert_xsimd_include}")
    unset(wengert_xsimd_include)
  endif()
endif()
