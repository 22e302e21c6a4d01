/// \file
/// Whole files by names that anyone may have given: what has no end is refused, and what cannot be read says
/// why. A byte order mark of UTF-8 in front of the text is left out.
#pragma once

#include <cstdint>
#include <string>

namespace chorale {

/// The bytes of a file or a pipe.
/// \throws std::runtime_error "cannot read <path>: <why>"
std::string read_file(const std::string& path);

/// The bytes of a plain file of at most `most_bytes`: no pipe, which only the first of several processes
/// could read, and which waits for a writer. \throws std::runtime_error "cannot read <path>: <why>"
std::string read_plain_file(const std::string& path, uint64_t most_bytes);

/// Until its end.
/// \throws std::runtime_error "cannot read standard input: <why>"
std::string read_standard_input();

}  // namespace chorale
