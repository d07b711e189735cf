include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/deltaproof)
install(TARGETS deltaproof deltaproof_headers EXPORT deltaproof-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/deltaproof DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  PATTERN study EXCLUDE PATTERN read_file.hpp EXCLUDE PATTERN write_file.hpp EXCLUDE)
install(EXPORT deltaproof-targets NAMESPACE deltaproof:: DESTINATION ${package_dir})
configure_package_config_file(cmake/deltaproof-config.cmake.in deltaproof-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(deltaproof-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/deltaproof-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/deltaproof-config-version.cmake cmake/FindMPFR.cmake DESTINATION ${package_dir})
