#include <stdexcept>
#include <string>

#include "core/accuracy.hpp"

namespace assay {

const Accuracy& accuracy(FunctionLibrary library, Function function) {
  if (const Accuracy* found = detail::find_accuracy(library, function)) return *found;
  throw std::logic_error("contracts/numerics.yaml promises no " + std::string(name(function)) + " of " +
                         std::string(name(library)));
}

}  // namespace assay
