#pragma once
// Returns the exception of a call as text.

#include <string>

#include "chorale/error.hpp"

namespace chorale::test {

/// Returns "timed_out: rank 1 ...", or "nothing".
template <class F>
std::string thrown(const F& f) {
  try {
    f();
  } catch (const RunError& error) {
    return std::string(name(error.reason)) + ": " + error.what();
  } catch (const UsageError& error) {
    return std::string("usage: ") + error.what();
  }
  return "nothing";
}

}  // namespace chorale::test
