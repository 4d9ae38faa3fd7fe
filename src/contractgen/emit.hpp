// The files generated from contracts. Each function returns one of them.
#pragma once

#include <span>

#include "contract/model.hpp"
#include "contractgen/source.hpp"

namespace assay::contractgen {

using contract::model::Contract;

/// ops/<op>.hpp: the argument struct and the entry points.
Source ops_header(const Contract& contract);
/// ops/<op>.cpp: clauses, tables, descriptor.
Source ops_source(const Contract& contract);
/// <op>_negative_test.cpp: one test per way to violate a requires clause.
Source negative_test(const Contract& contract);
/// <op>_oracle.cpp: the reference, instantiated for every number type. `backward` is the contract of <op>_backward, or
/// null if there is none.
Source oracle(const Contract& contract, const Contract* backward);
/// <op>_obligations.hpp and .cpp: declarations of the checks, and their links to obligation ids.
Source obligations_header(const Contract& contract);
Source obligations_source(const Contract& contract);
/// ops/calls.cpp: entry points for callers who run operations.
Source ops_calls(std::span<const Contract> contracts);
/// ops/index.cpp, oracles.cpp, obligations.cpp: look-up by name.
Source ops_index(std::span<const Contract> contracts);
Source oracle_index(std::span<const Contract> contracts);
Source obligations_index(std::span<const Contract> contracts);
/// program/operations.hpp: every operation as a function that appends a step to a program.
Source builder_functions(std::span<const Contract> contracts);
/// docs/<op>.md: the contract in words.
std::string documentation(const Contract& contract);

/// Returns the type, such as "f32", or the choice of types that kernels have.
std::string_view dtype_text(const contract::model::Tensor& tensor);
/// numerics.cpp: the table of contracts/numerics.yaml. Throws InputError: file:line:column, problem, remedy.
Source numerics(const std::string& path, const std::string& label);
/// Returns the shape, such as "[m, k]".
std::string shape_text(const contract::model::Tensor& tensor);
/// Defines the functions used by a violation's table entry, named after `stem`.
void violation_function(Source& out, const Contract& contract, const contract::model::Breakage& breakage,
                        const std::string& stem);
/// Returns the table entry.
std::string violation_initializer(const Contract& contract, const contract::model::Breakage& breakage,
                                  const std::string& stem);
/// Emit the tables of an operation, and the descriptor that refers to them.
void tables(Source& out, const Contract& contract);
void descriptor(Source& out, const Contract& contract);
/// Names used by one generated source only are in a namespace of its own, of_<op>, within the unnamed namespace, so
/// that several sources can be compiled as one translation unit.
std::string internal_namespace(const Contract& contract);
void open_internal(Source& out, const Contract& contract);
void close_internal(Source& out, const Contract& contract);
/// Includes <folder>/<op>.hpp where it exists; a gradient may stand in the file of its operation.
void include_of(Source& out, std::string_view folder, std::string_view op);
/// Emits constants <dim>_min and <dim>_max.
void dim_limits(Source& out, const Contract& contract);

}  // namespace assay::contractgen
