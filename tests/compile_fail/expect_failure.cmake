# SPDX-FileCopyrightText: 2026 The deltaproof authors
# SPDX-License-Identifier: MIT
#
# Compiles FILE twice: without FLAG, which must succeed, so that a missing header cannot pass for the
# expected error; and with FLAG, which must fail with a message that matches MESSAGE.
foreach(input COMPILER INCLUDE FILE FLAG MESSAGE)
  if(NOT DEFINED ${input})
    message(FATAL_ERROR "${input} is not set")
  endif()
endforeach()
set(command ${COMPILER} -std=c++20 -fsyntax-only -I${INCLUDE})
execute_process(COMMAND ${command} ${FILE} RESULT_VARIABLE control ERROR_VARIABLE output OUTPUT_QUIET)
if(NOT control EQUAL 0)
  message(FATAL_ERROR "the control must compile:\n${output}")
endif()
execute_process(COMMAND ${command} ${FLAG} ${FILE} RESULT_VARIABLE failure ERROR_VARIABLE output OUTPUT_QUIET)
if(failure EQUAL 0)
  message(FATAL_ERROR "${FILE} must not compile with ${FLAG}")
endif()
if(NOT output MATCHES "${MESSAGE}")
  message(FATAL_ERROR "the compiler's message does not match '${MESSAGE}':\n${output}")
endif()
