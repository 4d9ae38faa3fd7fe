#include "falsify/mutation/study/cuda/cubin.hpp"

#include <map>

namespace assay::falsify {

const void* loaded(CudaDevice& device, const Cubin& cubin, std::string_view name) {
  static std::map<Cubin, const void*> table;
  const void*& function = table[cubin];
  if (function == nullptr) {
    cudaLibrary_t library = nullptr;
    device.check("cudaLibraryLoadData",
                 cudaLibraryLoadData(&library, cubin->data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    cudaKernel_t kernel = nullptr;
    device.check("cudaLibraryGetKernel", cudaLibraryGetKernel(&kernel, library, std::string(name).c_str()));
    function = reinterpret_cast<const void*>(kernel);
  }
  return function;
}

}  // namespace assay::falsify
