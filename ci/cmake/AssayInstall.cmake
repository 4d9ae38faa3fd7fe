# `cmake --install`: installs everything that a project with its own contracts and kernels needs, for
# find_package(assay). This repository's operations and kernels are in the installed command; a project's command has
# the project's instead.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(layers ${CMAKE_INSTALL_INCLUDEDIR}/assay)  # the include root of "core/...", "contract/...", "falsify/engine/..."
set(data ${CMAKE_INSTALL_DATADIR}/assay)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/assay)

set(exported assay_core assay_system assay_bounds assay_runtime assay_contract assay_serve assay_contract_model assay_plugin assay_reference
             assay_engine assay_audit assay_properties assay_foreign assay_study assay_gate assay_falsify assay_import assay_cli assay_cuda_host assay contractgen)
if(ASSAY_CUDA)
  list(APPEND exported assay_cuda)
endif()
foreach(target ${exported})
  string(REGEX REPLACE "^assay_" "" name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endforeach()
set_target_properties(assay_cli PROPERTIES EXPORT_NAME main)
set_target_properties(assay PROPERTIES EXPORT_NAME command)
target_include_directories(assay_core PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${layers}>)
target_compile_features(assay_core PUBLIC cxx_std_20)

install(TARGETS ${exported} EXPORT assayTargets
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/assay)
install(EXPORT assayTargets NAMESPACE assay:: DESTINATION ${package})
# Tests of a project's own operations, if their objects were built: `ci/falsify` builds only the command.
if(ASSAY_TESTS)
  set_target_properties(assay_tests PROPERTIES EXPORT_NAME tests)
  install(TARGETS assay_tests EXPORT assayTestsTargets OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/assay OPTIONAL)
  install(EXPORT assayTestsTargets NAMESPACE assay:: DESTINATION ${package})
endif()
install(DIRECTORY src/ DESTINATION ${layers} FILES_MATCHING PATTERN "*.hpp" PATTERN cli EXCLUDE PATTERN contractgen EXCLUDE
        PATTERN assay EXCLUDE PATTERN spirv EXCLUDE)
install(DIRECTORY src/runtime/cuda_host/shim DESTINATION ${layers}/runtime/cuda_host)
install(DIRECTORY falsify/ DESTINATION ${layers}/falsify FILES_MATCHING PATTERN "*.hpp" PATTERN adversarial EXCLUDE
        PATTERN spirv EXCLUDE)
install(DIRECTORY reference/ DESTINATION ${layers}/reference FILES_MATCHING PATTERN "*.hpp")
install(FILES src/plugin/assay/plugin.h DESTINATION ${layers})
install(DIRECTORY contracts DESTINATION ${data})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(ci/cmake/assayConfig.cmake.in assayConfig.cmake INSTALL_DESTINATION ${package}
                              PATH_VARS data NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(assayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/assayConfig.cmake ${PROJECT_BINARY_DIR}/assayConfigVersion.cmake
              ci/cmake/AssayGenerate.cmake ci/cmake/AssayOperations.cmake ci/cmake/AssayCudaHost.cmake ci/cmake/cuda_host.py DESTINATION ${package})
