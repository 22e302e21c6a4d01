#pragma once
// Finds parts of texts.

#include <string>

namespace chorale::test {

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace chorale::test
