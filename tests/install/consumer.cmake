# `cmake --install`, then a project of its own that finds the package, builds and runs: the oracle, and a verdict.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
install_and_build(${EXAMPLE})
run(${BOX}/build/consumer)
run(${BOX}/build/answer)
