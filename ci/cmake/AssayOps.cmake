# contracts/*.yaml is the only list of operations. This file generates their sources and checks that every layer has its
# file for each operation, and no file without an operation.
include(${CMAKE_CURRENT_LIST_DIR}/AssayGenerate.cmake)
file(GLOB ASSAY_CONTRACT_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/contracts/*.yaml)
set(ASSAY_OPS "")
foreach(file ${ASSAY_CONTRACT_FILES})
  cmake_path(GET file STEM op)
  if(NOT op STREQUAL "numerics")  # accuracy of functions, not an operation
    list(APPEND ASSAY_OPS ${op})
  endif()
endforeach()
set(ASSAY_GENERATED ${PROJECT_BINARY_DIR}/generated)

# Stops if an operation lacks a file that the layer requires. A gradient may stand in the file of its operation, which
# names it.
function(assay_require_layer folder extension)
  foreach(op ${ASSAY_OPS})
    string(REGEX REPLACE "_backward$" "" forward ${op})
    set(named "")
    if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/${forward}.${extension})
      file(STRINGS ${PROJECT_SOURCE_DIR}/${folder}/${forward}.${extension} named REGEX "${op}" LIMIT_COUNT 1)
    endif()
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${folder}/${op}.${extension} AND NOT named)
      message(SEND_ERROR "${folder}/${op}.${extension} is missing: contracts/${op}.yaml makes ${op} an "
                         "operation, so add that file or remove the contract.")
    endif()
  endforeach()
endfunction()

# Stops if a file belongs to an operation without a contract. Helper files may be in the same folder: a file counts as
# an operation's only if a line matches `pattern` (<name>: the file's own name). With VARIANTS, <op>_<algorithm> belongs
# to <op>, too.
function(assay_forbid_orphans glob pattern)
  file(GLOB files RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${glob})
  foreach(file ${files})
    cmake_path(GET file STEM name)
    string(REPLACE "<name>" "${name}" own_pattern "${pattern}")
    file(STRINGS ${PROJECT_SOURCE_DIR}/${file} claims REGEX "${own_pattern}" LIMIT_COUNT 1)
    set(owned FALSE)
    foreach(op ${ASSAY_OPS})
      if(name STREQUAL op OR (ARGN STREQUAL "VARIANTS" AND name MATCHES "^${op}_"))
        set(owned TRUE)
      endif()
    endforeach()
    if(claims AND NOT owned)
      message(FATAL_ERROR "${file} belongs to no operation: there is no contracts/${name}.yaml, so add it or "
                          "remove the file.")
    endif()
  endforeach()
endfunction()

assay_require_layer(reference hpp)
assay_require_layer(falsify/properties cpp)
assay_require_layer(kernels/cpu/naive cpp)
assay_require_layer(kernels/cuda cu)
assay_require_layer(kernels/vulkan cpp)
assay_require_layer(kernels/vulkan comp)
# Names of kernels/cuda/<op>.cu.
set(ASSAY_CUDA_FILES "")
foreach(op ${ASSAY_OPS})
  if(EXISTS ${PROJECT_SOURCE_DIR}/kernels/cuda/${op}.cu)
    list(APPEND ASSAY_CUDA_FILES ${op}.cu)
  endif()
endforeach()
assay_forbid_orphans(falsify/properties/*.cpp "_obligations\\.hpp\"")
assay_forbid_orphans(kernels/cpu/*.cpp "KernelRegistration ")
assay_forbid_orphans(kernels/cpu/naive/*.cpp "KernelRegistration ")
assay_forbid_orphans(kernels/cuda/*.cu "KernelRegistration ")
assay_forbid_orphans(kernels/vulkan/*.cpp "KernelRegistration ")
assay_forbid_orphans(kernels/vulkan/*.comp "void main\\(" VARIANTS)
assay_forbid_orphans(reference/*.hpp "^void <name>\\(")

# assay_operations(): generates the sources, and defines
#   assay_generated    target to build before a generated header is included
#   assay_ops          checked calls and descriptors
#   assay_calls        entry points for callers
#   assay_oracles      references instantiated for every number type
#   assay_obligations  links from obligation ids to checks
function(assay_operations)
  assay_generate(${ASSAY_GENERATED} ${PROJECT_SOURCE_DIR} ${ASSAY_CONTRACT_FILES})
  add_custom_target(assay_generated DEPENDS ${generated_files})

  target_sources(assay_bounds PRIVATE ${ASSAY_GENERATED}/numerics.cpp)
  set_source_files_properties(${ASSAY_GENERATED}/numerics.cpp TARGET_DIRECTORY assay_bounds PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_dependencies(assay_bounds assay_generated)

  add_library(assay_ops STATIC ${generated_ops})
  # GCC 12 wrongly reports reads of a temporary Shape's unused extents when it inlines == of four axes.
  target_compile_options(assay_ops PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_libraries(assay_ops PUBLIC assay_contract)
  add_library(assay_calls STATIC ${generated_calls})
  target_link_libraries(assay_calls PUBLIC assay_ops assay_serve)
  add_library(assay_oracles STATIC ${generated_oracles})
  set_source_files_properties(${ASSAY_GENERATED}/oracles.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(assay_oracles PUBLIC assay_reference)
  # The scalar mirror must stay scalar: vectorized or replaced by memcpy, it would be another kernel, made by the
  # compiler.
  target_compile_options(assay_oracles PRIVATE -fno-tree-vectorize -fno-tree-loop-distribute-patterns)
  # Objects, so that the tables' registration is never dropped by the linker. What they name is in assay_properties (falsify/CMakeLists.txt).
  add_library(assay_obligations OBJECT ${generated_obligations})
  target_link_libraries(assay_obligations PUBLIC assay_ops)
  foreach(library assay_ops assay_calls assay_oracles assay_obligations)
    add_dependencies(${library} assay_generated)
    assay_compile_together(${library})
  endforeach()
endfunction()

# assay_negative_tests(TARGET): adds the generated tests that violate each requires clause.
function(assay_negative_tests target)
  foreach(op ${ASSAY_OPS})
    target_sources(${target} PRIVATE ${ASSAY_GENERATED}/${op}_negative_test.cpp)
  endforeach()
  add_dependencies(${target} assay_generated)
endfunction()
