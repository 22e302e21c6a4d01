#include "tools/authored.hpp"

#include <unistd.h>

namespace chorale::tools {
namespace {

std::string text;  // of the note that lives: a signal handler is handed nothing

extern "C" void say(int) { [[maybe_unused]] const auto written = ::write(2, text.data(), text.size()); }

}  // namespace

CrashNote::CrashNote(const std::string& program) {
  text = "error: a crash while program '" + program +
         "' was built\nhelp: CXX='c++ -g' gdb --args chorale ..., with the arguments of this command, stops "
         "where\n";
  stack_t stack = {};  // of its own: a recursion without end leaves nothing of the other
  stack.ss_sp = stack_;
  stack.ss_size = sizeof stack_;
  ::sigaltstack(&stack, &old_stack_);
  struct sigaction action = {};
  action.sa_handler = say;
  // Reset, so that the instruction that is tried again, or abort(), now ends the process.
  action.sa_flags = SA_RESETHAND | SA_ONSTACK;
  for (size_t which = 0; which < std::size(signals_); ++which) {
    ::sigaction(signals_[which], nullptr, &old_[which]);
    const bool taken = (old_[which].sa_flags & SA_SIGINFO) || old_[which].sa_handler != SIG_DFL;
    if (!taken) ::sigaction(signals_[which], &action, nullptr);  // a sanitizer says more
  }
}

CrashNote::~CrashNote() {
  for (size_t which = 0; which < std::size(signals_); ++which)
    ::sigaction(signals_[which], &old_[which], nullptr);
  ::sigaltstack(&old_stack_, nullptr);
}

}  // namespace chorale::tools
