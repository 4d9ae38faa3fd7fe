# Language, warnings, sanitizers, coverage and back ends, in one place.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

option(ASSAY_TESTS "Build the tests of the machinery" ON)
option(ASSAY_WERROR "Warnings are errors" OFF)
option(ASSAY_VULKAN "Build the Vulkan back end" ON)
option(ASSAY_CUDA "Build the CUDA back end with nvcc (cuda-host needs none)" OFF)
set(ASSAY_SANITIZE "" CACHE STRING "Sanitizers, as in address,undefined")
option(ASSAY_COVERAGE "Instrument for lcov" OFF)

if(ASSAY_CUDA)
  find_program(ASSAY_NVCC nvcc HINTS $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
  if(NOT ASSAY_NVCC)
    message(FATAL_ERROR "nvcc was not found: install the CUDA Toolkit, or configure without ASSAY_CUDA.")
  endif()
  set(CMAKE_CUDA_COMPILER ${ASSAY_NVCC})
  # Machine code for Hopper, and PTX that drivers compile for every GPU since Ampere, the first with TF32.
  set(CMAKE_CUDA_ARCHITECTURES 80-virtual 90-real)
  enable_language(CUDA)
  # CMake 3.25 does not know nvcc 13's flags for this standard.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

# Paths in programs, such as a kernel's source, begin at the top of the repository.
set(map -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${map}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${map}>)

# Contraction would fuse a*b+c although the kernel or reference has two roundings.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
if(ASSAY_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(ASSAY_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ASSAY_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_compile_definitions(ASSAY_SANITIZED)
  add_link_options(-fsanitize=${ASSAY_SANITIZE})
endif()
if(ASSAY_COVERAGE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--coverage> $<$<COMPILE_LANGUAGE:CXX>:-fprofile-update=atomic>)
  add_compile_definitions(ASSAY_COVERAGE)  # processes that do not end by exit() write their counts (child_exit.hpp)
  add_link_options(--coverage)
endif()

# assay_favor_build_time(TARGET [LEVEL]): lower optimization for targets whose build time exceeds their run time.
function(assay_favor_build_time target)
  set(level -O1)
  if(ARGN)
    set(level ${ARGN})
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
endfunction()

# assay_compile_together(TARGET [LIST...]): compiles fourteen sources as one unit. This at least halves the build time,
# since most of it is instantiating the same templates from headers. Names in unnamed namespaces must therefore differ
# between sources. Given the names of LISTs of sources, a unit only combines sources of one list, because programs that
# replace sources (tests/engine_mutants) replace whole objects.
function(assay_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 14)
  foreach(list ${ARGN})
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
    set(count 0)
    foreach(source ${${list}})
      math(EXPR batch "${count} / 14")
      math(EXPR count "${count} + 1")
      set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${list}_${batch})
    endforeach()
  endforeach()
endfunction()

# assay_vectorize_together(VARIABLE SOURCE...): returns the files to compile instead of these Highway kernels. Parsing
# Highway once per instruction set takes most of a kernel's build time. Kernels with their names in a namespace
# of_<kernel> share it, seven per unit.
function(assay_vectorize_together variable)
  set(batches)
  foreach(source ${ARGN})
    file(STRINGS ${source} own REGEX "^namespace assay::cpu::of_" LIMIT_COUNT 1)
    if(own)
      list(APPEND together ${source})
    else()
      list(APPEND batches ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  set(first 0)
  while(first LESS count)
    list(SUBLIST together ${first} 7 sources)
    set(batch kernels/cpu/together_${first}.cpp)
    list(TRANSFORM sources REPLACE "${CMAKE_SOURCE_DIR}/(.+)" "#include \"\\1\"" OUTPUT_VARIABLE includes)
    list(JOIN includes "\n" includes)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${batch} @ONLY CONTENT "#define HWY_TARGET_INCLUDE \"@batch@\"
#include \"hwy/foreach_target.h\"
@includes@
")
    list(APPEND batches ${CMAKE_BINARY_DIR}/generated/${batch})
    math(EXPR first "${first} + 7")
  endwhile()
  set(${variable} ${batches} PARENT_SCOPE)
endfunction()

# assay_write_links(FILE): a line each library or program of the build, with what it links: NAME:LIBRARY...  (tests/rooms_test.py)
function(assay_write_links file)
  set(lines "")
  set(folders ${CMAKE_SOURCE_DIR})
  while(folders)
    list(POP_FRONT folders folder)
    get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    list(APPEND folders ${below})
    foreach(target ${targets})
      set(links "")
      foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
        get_target_property(own ${target} ${property})
        if(own)
          list(APPEND links ${own})
        endif()
      endforeach()
      string(APPEND lines "${target}:${links}\n")
    endforeach()
  endwhile()
  file(CONFIGURE OUTPUT ${file} CONTENT "@lines@" @ONLY)
endfunction()

find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE)
  # Paths relative to the checkout let presets and clones share compilations. Depend mode skips preprocessing on a cache
  # miss.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 ${ASSAY_CCACHE})
endif()

# Include roots: src/ for the layers, the top for reference/, falsify/ and kernels/, and generated code.
include_directories(${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
