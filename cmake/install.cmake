# Headers, and a package for find_package(streambp). Nothing in it depends on the architecture.
include(CMakePackageConfigHelpers)

set(package_dir share/cmake/streambp)
install(DIRECTORY include/streambp DESTINATION include
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(TARGETS streambp EXPORT streambpTargets)
install(EXPORT streambpTargets NAMESPACE streambp:: DESTINATION ${package_dir})
configure_package_config_file(cmake/streambpConfig.cmake.in streambpConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(streambpConfigVersion.cmake COMPATIBILITY SameMinorVersion
                                 ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/streambpConfig.cmake
              ${PROJECT_BINARY_DIR}/streambpConfigVersion.cmake
        DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION share/doc/streambp)
