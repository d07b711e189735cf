# A changed copy of the sources and what its lists need of them; everything else comes out of the built library.
cmake_minimum_required(VERSION 3.25)
project(one_of_each LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_library(built INTERFACE)
target_include_directories(built INTERFACE include src tests ${ROOT}/tests ${ROOT}/src)
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
# What was added is used. The files of the library that read a table which has grown are compiled again.
add_executable(uses ${ROOT}/tests/adding/uses.cpp src/rule/rules.cpp src/oracle/rule_gain.cpp src/plan/plan_toml.cpp
  src/plan/plan_variants.cpp src/files/exchange.cpp src/files/exchange_write.cpp src/oracle/problem.cpp src/inputs/regimes.cpp)
target_link_libraries(uses PRIVATE built)
add_executable(metric ${ROOT}/tests/adding/metric.cpp ${METRIC}/src/oracle/measure.cpp ${METRIC}/src/referee/judging.cpp)
target_include_directories(metric BEFORE PRIVATE ${METRIC}/include ${METRIC}/src)
target_link_libraries(metric PRIVATE built)
# A rule is tested for being there.
add_executable(rules ${ROOT}/tests/rule/rules_test.cpp src/rule/rules.cpp)
target_link_libraries(rules PRIVATE built gtest_main gmock gtest)
# They read the same headers.
set_target_properties(deltaproof deltaproof_research uses metric PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
target_precompile_headers(deltaproof_research PRIVATE <filesystem> <boost/multiprecision/gmp.hpp> <boost/multiprecision/mpfr.hpp>)
foreach(target deltaproof uses metric rules)
  target_precompile_headers(${target} REUSE_FROM deltaproof_research)
endforeach()
