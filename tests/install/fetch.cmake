# A project that fetches this one: it configures, compiles against the headers and knows what to link; none of our tests, and
# no program, come with it. The library itself is left to the other tests.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
file(REMOVE_RECURSE ${BOX})
configure(${CMAKE_CURRENT_LIST_DIR}/fetching -DFETCHCONTENT_SOURCE_DIR_DELTAPROOF=${ROOT})
run(${CMAKE_COMMAND} --build ${BOX}/build --target CMakeFiles/fetching.dir/fetching.cpp.o)
execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${BOX}/build -N OUTPUT_VARIABLE tests)
if(NOT tests MATCHES "Total Tests: 1\n")
  message(FATAL_ERROR "the project has one test of its own, and CTest lists\n${tests}")
endif()
