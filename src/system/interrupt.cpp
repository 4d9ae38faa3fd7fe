#include "system/interrupt.hpp"

#include <sys/wait.h>

namespace assay {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM};

volatile sig_atomic_t noted = 0;
bool catching = false;

void note(int signal) { noted = signal; }

}  // namespace

CatchSignals::CatchSignals() {
  noted = 0;
  catching = true;
  for (std::size_t s = 0; s < kSignals.size(); ++s) {
    sigaction(kSignals[s], nullptr, &before_[s]);
    struct sigaction action {};
    action.sa_handler = note;
    if (before_[s].sa_handler != SIG_IGN) sigaction(kSignals[s], &action, nullptr);
  }
}

CatchSignals::~CatchSignals() {
  for (std::size_t s = 0; s < kSignals.size(); ++s) sigaction(kSignals[s], &before_[s], nullptr);
  catching = false;
}

int caught_signal() { return noted; }

bool ends_run(int wait_status) {
  return catching && WIFSIGNALED(wait_status) && (WTERMSIG(wait_status) == SIGINT || WTERMSIG(wait_status) == SIGTERM);
}

void restore_signals() {
  for (const int signal : kSignals) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler == note) ::signal(signal, SIG_DFL);
  }
  noted = 0;
  catching = false;
}

}  // namespace assay
