#include "core/errors.hpp"

#include <utility>

namespace assay {

ContractViolation::ContractViolation(std::string op_, Kind kind_, std::string clause_, std::string says_,
                                     std::string values_)
    : std::runtime_error("Contract [" + op_ + "] " + (kind_ == Kind::precondition ? "Pre" : "Post") +
                         "-condition violated: " + says_ + " (" + clause_ + ")" +
                         (values_.empty() ? "" : ": " + values_)),
      op(std::move(op_)), kind(kind_), clause(std::move(clause_)), says(std::move(says_)), values(std::move(values_)) {}

Unavailable::Unavailable(std::string what, std::string why_)
    : std::runtime_error(what + " is unavailable: " + why_), subject(std::move(what)), why(std::move(why_)) {}

DeviceError::DeviceError(std::string call_, std::string code_, std::string detail)
    : std::runtime_error(call_ + " failed with " + code_ + (detail.empty() ? "" : ": " + detail)),
      call(std::move(call_)), code(std::move(code_)) {}

InputError::InputError(std::string where_, std::string problem_, std::string remedy_)
    : std::runtime_error((where_.empty() ? "" : where_ + ": ") + problem_ + (remedy_.empty() ? "" : "; " + remedy_)),
      where(std::move(where_)), problem(std::move(problem_)), remedy(std::move(remedy_)) {}

}  // namespace assay
