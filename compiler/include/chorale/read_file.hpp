/// \file
/// Reads whole files by names that anyone may have given. Refuses files that have no end, and says why a file
/// cannot be read. Leaves out a byte order mark of UTF-8 in front of the text.
#pragma once

#include <cstdint>
#include <string>

namespace chorale {

/// Returns the bytes of a file or a pipe.
/// \throws std::runtime_error "cannot read <path>: <why>"
std::string read_file(const std::string& path);

/// Returns the bytes of a plain file of at most `most_bytes`. Refuses a pipe, because only the first of
/// several processes could read it, and because it waits for a writer.
/// \throws std::runtime_error "cannot read <path>: <why>"
std::string read_plain_file(const std::string& path, uint64_t most_bytes);

/// Reads standard input until its end.
/// \throws std::runtime_error "cannot read standard input: <why>"
std::string read_standard_input();

}  // namespace chorale
