#include "falsify/audit/subject.hpp"

#include <algorithm>
#include <string>

#include "core/errors.hpp"

namespace assay::falsify::audit {
namespace {

std::span<const OperationSubject>& registered() {
  static std::span<const OperationSubject> table;
  return table;
}

}  // namespace

SubjectsRegistration::SubjectsRegistration(std::span<const OperationSubject> table) { registered() = table; }

Subject subject(std::string_view op) {
  const auto found = std::ranges::find(registered(), op, &OperationSubject::op);
  if (found == registered().end())
    throw InputError("operation '" + std::string(op) + "'", "there is no contract of this name",
                     "`assay list` prints those that there are");
  return found->subject();
}

}  // namespace assay::falsify::audit
