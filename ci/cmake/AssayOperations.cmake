# Operations of other projects: one YAML, one reference header, kernels.
#
#   find_package(assay REQUIRED)
#   assay_add_operations(operations CONTRACTS layer_norm.yaml REFERENCES layer_norm.hpp KERNELS layer_norm.cpp)
#   assay_add_command(myassay operations)  # the `assay` command for these operations
#   assay_add_tests(mytests operations)    # every obligation x kernel, and each contract's violations, as GoogleTest;
#   ctest
include(${CMAKE_CURRENT_LIST_DIR}/AssayGenerate.cmake)

# Returns the absolute paths of the files in `result`. Stops if a file does not exist.
function(assay_find_files result name)
  set(found "")
  foreach(file ${ARGN})
    cmake_path(ABSOLUTE_PATH file NORMALIZE)
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "assay_add_operations(${name}): ${file} does not exist: create it, or correct the path.")
    endif()
    list(APPEND found ${file})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# assay_add_operations(NAME CONTRACTS <op>.yaml... REFERENCES <op>.hpp... KERNELS file... [PROPERTIES file...])
# Defines the object library NAME: entry points (#include "ops/<op>.hpp"), oracles, obligations and kernels of these
# operations. Contracts and references are matched by file name. PROPERTIES are the functions that obligations and
# `inputs` name (#include "<op>_obligations.hpp"). Contracts may be Assay's own: ${ASSAY_CONTRACTS_DIR}/<op>.yaml.
function(assay_add_operations name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "CONTRACTS;REFERENCES;KERNELS;PROPERTIES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_CONTRACTS)
    message(FATAL_ERROR "assay_add_operations(${name}): '${arg_UNPARSED_ARGUMENTS}' is no argument, or CONTRACTS are missing: "
                        "write assay_add_operations(NAME CONTRACTS ... REFERENCES ... KERNELS ... [PROPERTIES ...]).")
  endif()
  foreach(list CONTRACTS REFERENCES KERNELS PROPERTIES)
    assay_find_files(arg_${list} ${name} ${arg_${list}})
  endforeach()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  foreach(contract ${arg_CONTRACTS})
    cmake_path(GET contract STEM op)
    set(own ${arg_REFERENCES})
    list(FILTER own INCLUDE REGEX "/${op}\\.hpp$")
    get_target_property(roots assay::core INTERFACE_INCLUDE_DIRECTORIES)
    string(REGEX REPLACE "_backward$" "" forward ${op})
    find_file(shipped NAMES reference/${op}.hpp reference/${forward}.hpp PATHS ${roots} NO_DEFAULT_PATH NO_CACHE)
    if(NOT own AND NOT shipped)
      message(FATAL_ERROR "assay_add_operations(${name}): no reference of ${op}: add ${op}.hpp to REFERENCES.")
    endif()
    if(own)
      file(CONFIGURE OUTPUT ${folder}/reference/${op}.hpp CONTENT "#include \"${own}\"\n")
    endif()
    unset(shipped)
  endforeach()

  assay_generate(${folder} ${CMAKE_CURRENT_SOURCE_DIR} ${arg_CONTRACTS})
  add_library(${name} OBJECT ${generated_ops} ${generated_calls} ${generated_oracles} ${generated_obligations} ${arg_KERNELS} ${arg_PROPERTIES})
  # GCC 12 wrongly reports reads of a temporary Shape's unused extents when it inlines == of four axes.
  set_source_files_properties(${generated_ops} PROPERTIES COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF ASSAY_GENERATED_TESTS "${generated_tests}")
  target_include_directories(${name} BEFORE PUBLIC ${folder} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC assay::falsify assay::serve)
  # Contraction would fuse a*b+c although the kernel or reference has two roundings.
  target_compile_options(${name} PRIVATE -ffp-contract=off)
endfunction()

# assay_add_command(NAME OPERATIONS): the executable NAME with every command of `assay`, for these operations.
function(assay_add_command name operations)
  add_executable(${name} $<TARGET_OBJECTS:${operations}>)
  target_link_libraries(${name} PRIVATE assay::main assay::serve)
endfunction()

# assay_add_tests(NAME OPERATIONS): the executable NAME, and a ctest entry for each of its tests.
function(assay_add_tests name operations)
  if(NOT TARGET assay::tests)
    message(FATAL_ERROR "assay_add_tests(${name}): this Assay was installed without its test objects: build all of it with ASSAY_TESTS before `cmake --install`.")
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  get_target_property(generated ${operations} ASSAY_GENERATED_TESTS)
  set_source_files_properties(${generated} PROPERTIES GENERATED TRUE)
  add_executable(${name} $<TARGET_OBJECTS:${operations}> $<TARGET_OBJECTS:assay::tests> ${generated})
  add_dependencies(${name} ${operations})
  target_link_libraries(${name} PRIVATE assay::falsify assay::serve GTest::gtest)
  target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:${operations},INCLUDE_DIRECTORIES>)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60)
endfunction()
