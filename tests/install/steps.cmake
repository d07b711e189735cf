# What the tests of the installed package share. BUILD, BOX, COMPILER and SANITIZE come from the command line.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nfailed with ${code}:\n${output}")
  endif()
endfunction()

# A project in SOURCE, configured into BOX/build.
function(configure source)
  set(flags "")
  if(SANITIZE)
    set(flags -DCMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
  endif()
  run(${CMAKE_COMMAND} -S ${source} -B ${BOX}/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${COMPILER} ${flags} ${ARGN})
endfunction()

# The package into BOX/prefix, then a project that finds it there.
function(install_and_build source)
  file(REMOVE_RECURSE ${BOX})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${BOX}/prefix)
  configure(${source} -DCMAKE_PREFIX_PATH=${BOX}/prefix)
  run(${CMAKE_COMMAND} --build ${BOX}/build)
endfunction()
