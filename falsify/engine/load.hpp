// Threads that take processors from a kernel's own, so that these arrive in another order than on an idle machine.
#pragma once

namespace assay::falsify {

/// While it lives and `on` is true, one thread for each of a few processors of this process works for some
/// microseconds, yields, and works again. The threads begin with the first such scope and stay asleep between scopes.
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
