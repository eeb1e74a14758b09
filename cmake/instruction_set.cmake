# The bits and the speed of a gradient belong to the instruction set that the flags ask for, so the
# flags are chosen here, in the open, and never by the headers.

# Sets `result` to the x86-64 level (4: AVX-512, 3: AVX2 with FMA, 0: neither) that the compiler
# uses under the given flags; to "refused" when it does not accept them.
function(streambp_level result)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${ARGN} -dM -E -x c++ /dev/null
                  OUTPUT_VARIABLE macros ERROR_QUIET RESULT_VARIABLE status)
  set(level 0)
  if(NOT status EQUAL 0)
    set(level refused)
  elseif(macros MATCHES "__AVX512F__" AND macros MATCHES "__AVX512BW__"
         AND macros MATCHES "__AVX512DQ__" AND macros MATCHES "__AVX512VL__")
    set(level 4)
  elseif(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__")
    set(level 3)
  endif()
  set(${result} ${level} PARENT_SCOPE)
endfunction()

if(CMAKE_CROSSCOMPILING)
  set(cpu_level 0)
  set(default_march "")
else()
  streambp_level(cpu_level -march=native)
  if(cpu_level STREQUAL refused)
    set(default_march "")
  elseif(cpu_level GREATER_EQUAL 3)
    set(default_march x86-64-v3)
  else()
    set(default_march native)
  endif()
endif()
set(STREAMBP_MARCH "${default_march}" CACHE STRING
    "The -march of tests, examples and measurements; empty: the compiler's own")

set(march_flag "")
if(STREAMBP_MARCH)
  set(march_flag -march=${STREAMBP_MARCH})
endif()

separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
streambp_level(level ${flags} ${march_flag})
if(level STREQUAL refused)
  message(FATAL_ERROR "streambp: the compiler refuses -march=${STREAMBP_MARCH}; "
                      "set STREAMBP_MARCH to one it knows, or to nothing")
elseif(cpu_level GREATER level)
  set(preset_3 avx2)
  set(preset_4 avx512)
  message(STATUS "streambp: this CPU offers more than -march=${STREAMBP_MARCH} asks for; "
                 "the preset '${preset_${cpu_level}}' uses it (other bits, more speed)")
elseif(level GREATER cpu_level AND NOT CMAKE_CROSSCOMPILING)
  message(STATUS "streambp: this CPU cannot run what -march=${STREAMBP_MARCH} makes")
endif()
