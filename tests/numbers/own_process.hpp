// Runs code that may access forbidden memory in a process of its own; one process serves many tries, since starting it
// costs more than a try.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

namespace assay::numbers {

/// Progress of the process, shared with the parent that waits for it.
class Place {
 public:
  Place()
      : text_(static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (text_ == MAP_FAILED) std::abort();
  }
  ~Place() { munmap(text_, kBytes); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  void set(const std::string& text) { std::snprintf(text_, kBytes, "%s", text.c_str()); }
  std::string text() const { return text_; }

 private:
  static constexpr std::size_t kBytes = 4096;
  char* text_;
};

/// Runs `f` in a process of its own. Returns an empty string if `f` returns; else how the process ended and the last
/// place that `f` set.
template <class F>
std::string ended_by(const F& f) {
  Place place;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    try {
      f(place);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return std::string("signal ") + strsignal(WTERMSIG(status)) + " at " + place.text();
  return WEXITSTATUS(status) == 0 ? "" : "exit " + std::to_string(WEXITSTATUS(status)) + " at " + place.text();
}

}  // namespace assay::numbers
