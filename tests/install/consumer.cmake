# `cmake --install`, then a project of its own that finds the package, builds and runs.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
install_and_build(${EXAMPLE})
run(${BOX}/build/consumer)
