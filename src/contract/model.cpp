#include "contract/model.hpp"

#include <algorithm>

namespace assay::contract::model {
namespace {

template <class Items>
int index_of(const Items& items, std::string_view name) {
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].name.value == name) return static_cast<int>(i);
  return -1;
}

}  // namespace

int dim_index(const Contract& contract, std::string_view name) { return index_of(contract.dims, name); }
int param_index(const Contract& contract, std::string_view name) { return index_of(contract.params, name); }
int tensor_index(const Contract& contract, std::string_view name) { return index_of(contract.tensors, name); }
bool builtin_check(std::string_view name) {
  return std::ranges::find(kBuiltinChecks, name) != std::end(kBuiltinChecks);
}

}  // namespace assay::contract::model
