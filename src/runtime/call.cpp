#include "runtime/call.hpp"

#include <string>

#include "core/errors.hpp"

namespace assay {

void refuse_dtype(const char* tensor, DType given, DType wanted) {
  throw InputError("tensor '" + std::string(tensor) + "'",
                   "it holds " + std::string(name(given)) + " where the contract says " + std::string(name(wanted)),
                   "pass a tensor of that type");
}

}  // namespace assay
