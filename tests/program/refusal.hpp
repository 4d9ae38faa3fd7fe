// The message of an InputError.
#pragma once

#include <string>

#include "core/errors.hpp"

namespace assay::program {

/// Returns the sentence of the InputError that f throws.
template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const InputError& e) {
    return e.what();
  }
  return "not refused";
}

}  // namespace assay::program
