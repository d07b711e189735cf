# `cmake --install`, then examples/cuda-style-kernel as a project of its own: the kernel passes its tests, the same kernel
# with a planted fault fails them with the words one would forward, and the witness it leaves is judged again.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
install_and_build(${EXAMPLE})
set(ENV{RC_PARAMS} "seed=1 max_success=4")
file(MAKE_DIRECTORY ${BOX}/witnesses)
set(ENV{DELTAPROOF_WITNESS_DIR} ${BOX}/witnesses)
run(${BOX}/build/chunk_kernel_test)

execute_process(COMMAND ${BOX}/build/faulty_chunk_kernel_test RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_QUIET)
if(code EQUAL 0)
  message(FATAL_ERROR "the faulty kernel passed its tests:\n${said}")
endif()
set(witness ${BOX}/witnesses/on-chunk_delta_rule.keeps_its_plan-1)
foreach(words
    "conforms to the plan fla-chunk-delta on regime repeated, seed 0: delta_rule, B 1, T 160, H 2, HV 2, K 32, V 32, BF16"
    "result of chunk_kernel.cpp (chunk, C 64): o BF16 [1, 160, 2, 32], final_state F32 [1, 2, 32, 32] as (V, K)"
    "verdict      refuted: Ai: sequence 0, head 0, chunk 0, row 2, column 0:"
    "first bad    Ai"
    "diagnosis    inverse-bf16-between-steps"
    "again        deltaproof replay ${witness}"
    "Falsifiable after"
    "deltaproof gen --regime repeated --op delta_rule --rule euler --B 1 --T 3 --K 16 --V 16 --H 1 --HV 1")
  string(FIND "${said}" "${words}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the faulty kernel's tests do not say\n${words}\nbut\n${said}")
  endif()
endforeach()
execute_process(COMMAND ${BOX}/prefix/bin/deltaproof replay ${witness} RESULT_VARIABLE code OUTPUT_VARIABLE said)
if(NOT code EQUAL 1 OR NOT said MATCHES "replay       reproduced")
  message(FATAL_ERROR "replay of the witness gave ${code}:\n${said}")
endif()

# docs/begin.md shows the example's own lines.
file(READ ${PAGE} page)
foreach(mark "## C++ and GoogleTest\n" "```cpp\n")
  string(FIND "${page}" "${mark}" at)
  string(SUBSTRING "${page}" ${at} -1 page)
endforeach()
string(REGEX REPLACE "^```cpp\n([^`]*)```.*" "\\1" shown "${page}")
string(STRIP "${shown}" shown)
file(READ ${EXAMPLE}/chunk_kernel_test.cpp example)
string(FIND "${example}" "${shown}" at)
if(shown STREQUAL "" OR at EQUAL -1)
  message(FATAL_ERROR "the C++ of ${PAGE} is not what ${EXAMPLE}/chunk_kernel_test.cpp says:\n${shown}")
endif()
