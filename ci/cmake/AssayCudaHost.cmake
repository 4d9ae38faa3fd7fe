# CUDA kernels without a GPU: compiles a .cu file for Assay's model of a CUDA device on the CPU.
#
#   assay_cuda_host_library(mine mine.cu)
#   assay falsify --lib libmine.so --symbol my_softmax --contract softmax --declare backend=cuda-host
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(assay_cuda_host_translator ${CMAKE_CURRENT_LIST_DIR}/cuda_host.py)

# assay_cuda_host_library(NAME file.cu... [file.cpp...]): a MODULE library for `--lib`.
function(assay_cuda_host_library name)
  set(sources "")
  foreach(file ${ARGN})
    cmake_path(ABSOLUTE_PATH file NORMALIZE)
    if(file MATCHES "\\.cu$")
      cmake_path(GET file STEM stem)
      cmake_path(GET file PARENT_PATH folder)
      set(translated ${CMAKE_CURRENT_BINARY_DIR}/${name}/${stem}.cpp)
      file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name})
      add_custom_command(OUTPUT ${translated} DEPENDS ${file} ${assay_cuda_host_translator} DEPFILE ${translated}.d VERBATIM
                         COMMAND Python3::Interpreter ${assay_cuda_host_translator} ${file} ${translated})
      list(APPEND sources ${translated})
      list(APPEND folders ${folder})
    else()
      list(APPEND sources ${file})
    endif()
  endforeach()
  add_library(${name} MODULE ${sources})
  target_include_directories(${name} PRIVATE ${folders})
  target_link_libraries(${name} PRIVATE assay::cuda_host)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-UNDEBUG>)  # nvcc keeps the asserts of kernels
  # Names every load and store, of which the model finds races on shared memory (src/runtime/cuda_host/races.cpp): the
  # thread sanitizer's library is not linked. Another sanitizer takes its place.
  if(NOT ASSAY_SANITIZE AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread>)
  endif()
endfunction()
