# A changed copy of the sources and what its lists need of them; everything else comes out of the built library.
cmake_minimum_required(VERSION 3.25)
project(one_of_each LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_library(built INTERFACE)
target_include_directories(built INTERFACE include src tests ${ROOT}/tests)
target_include_directories(built SYSTEM INTERFACE ${EIGEN})
target_compile_options(built INTERFACE -O0 -ffp-contract=off)
target_link_options(built INTERFACE -Wl,--allow-multiple-definition)
target_link_libraries(built INTERFACE ${LIBRARY} hwy mpfr gmp crypto pthread)
# The names under which cmake/ finds them. Objects go before the libraries, so that a changed file stands in for
# its former self, which the library has in one unit with others.
add_executable(deltaproof ${ROOT}/tests/adding/lists.cpp ${CHANGED})
add_library(deltaproof_research OBJECT)
target_link_libraries(deltaproof_research PRIVATE built)
target_link_libraries(deltaproof PRIVATE deltaproof_research built)
include(cmake/studies.cmake)
include(cmake/plans.cmake)
include(cmake/claims.cmake)
# A rule is tested for being there.
add_executable(rules ${ROOT}/tests/rule/rules_test.cpp)
target_link_libraries(rules PRIVATE built gtest_main gmock gtest)
