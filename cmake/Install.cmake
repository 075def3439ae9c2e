# Headers, exported targets and the package files that find_package(wengert) reads.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/wengert")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/wengert" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp")
install(TARGETS wengert wengert_native EXPORT wengertTargets)
install(EXPORT wengertTargets NAMESPACE wengert:: DESTINATION "${package_dir}")
if(TARGET wengert_data)
  install(TARGETS wengert_data EXPORT wengertDataTargets)
  install(EXPORT wengertDataTargets NAMESPACE wengert:: DESTINATION "${package_dir}")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/wengertConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/wengertConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/wengertConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/wengertConfig.cmake" "${PROJECT_BINARY_DIR}/wengertConfigVersion.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/wengertXsimd.cmake"
        DESTINATION "${package_dir}")
