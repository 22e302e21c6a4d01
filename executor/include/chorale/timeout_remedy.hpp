/// \file
/// Language bindings rewrite the advice in the message of a timeout, which is for users of C++.
#pragma once

#include <cstddef>
#include <string>

namespace chorale {

/// Replaces the library's advice, "make the world with a longer timeout (JoinOptions, ...)", with `remedy`.
/// It does not change other messages.
inline std::string with_timeout_remedy(std::string message, const std::string& remedy) {
  const std::string begin = "make the world with a longer timeout (";
  const size_t at = message.find(begin);
  if (at == message.npos) return message;
  size_t end = at + begin.size();  // the loop moves this past the closing bracket
  for (unsigned open = 1; open && end < message.size(); ++end)
    open += (message[end] == '(') - (message[end] == ')');
  return message.replace(at, end - at, remedy);
}

}  // namespace chorale
