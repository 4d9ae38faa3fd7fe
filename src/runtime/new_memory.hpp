// Contents of memory that kernels allocate, for campaigns.
#pragma once

namespace assay {

/// While one lives, what Device::allocate gives holds NaN in every floating format and -1 in integers. Fresh memory is
/// often zero, and a kernel that counts on that is right by chance.
class PoisonNewMemory {
 public:
  PoisonNewMemory();
  ~PoisonNewMemory();
  PoisonNewMemory(const PoisonNewMemory&) = delete;
  PoisonNewMemory& operator=(const PoisonNewMemory&) = delete;
};

}  // namespace assay
