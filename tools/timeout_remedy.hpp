/// \file
/// What is said of a wait that may only take longer, to readers who have no C++.
#pragma once

#include <cstddef>
#include <string>

namespace chorale {

/// Puts `remedy` in the place of what the library says: "make the world with a longer timeout (JoinOptions,
/// ...)". Other messages are left as they are.
inline std::string with_timeout_remedy(std::string message, const std::string& remedy) {
  const std::string begin = "make the world with a longer timeout (";
  const size_t at = message.find(begin);
  if (at == message.npos) return message;
  size_t end = at + begin.size();  // behind the bracket that closes
  for (unsigned open = 1; open && end < message.size(); ++end)
    open += (message[end] == '(') - (message[end] == ')');
  return message.replace(at, end - at, remedy);
}

}  // namespace chorale
