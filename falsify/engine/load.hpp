// Threads that compete with a kernel's threads for processors, so that these finish in another order than on an idle
// machine.
#pragma once

namespace assay::falsify {

/// While in scope with `on` true, one thread for each of a few processors alternates between some microseconds of work
/// and a yield. The threads start with the first such scope and sleep between scopes.
class LoadScope {
 public:
  explicit LoadScope(bool on);
  ~LoadScope();
  LoadScope(const LoadScope&) = delete;
  LoadScope& operator=(const LoadScope&) = delete;

 private:
  bool on_;
};

}  // namespace assay::falsify
