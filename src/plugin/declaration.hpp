// Declarations of a foreign kernel: text on the command line, in replay files and from the library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/arithmetic.hpp"
#include "core/dtype.hpp"
#include "runtime/device.hpp"

namespace assay::plugin {

/// Bounds are derived from it (core/arithmetic.hpp). The default is plain float32 on the host with the C library's
/// functions.
struct Declaration {
  Arithmetic arithmetic{};
  DType storage = DType::f32;
  Backend backend = Backend::cpu;
  bool deterministic = true;
  bool batch_invariant = true;
  std::vector<std::string> rejects{};  ///< tensors, params and dims whose forbidden values the kernel refuses
};

/// The keys of declarations, in the order of the table that parses them.
struct DeclarationKey {
  std::string_view name, values, says;
  std::string usual;  ///< default value
};
const std::vector<DeclarationKey>& declaration_keys();

/// Returns the keys and their values, for a help text.
std::string_view declaration_help();

/// Applies "accumulator=f32,inputs=tf32,..." to `declaration`; empty text changes nothing. `where` begins messages.
/// Throws InputError for an unknown key or value, or a repeated key.
void declare(Declaration& declaration, std::string_view text, const std::string& where);

/// Returns text from which declare() makes the same declaration; empty for the default.
std::string to_text(const Declaration& declaration);

}  // namespace assay::plugin
