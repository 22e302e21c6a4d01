/// \file
/// Reads whole files. The names may come from untrusted input, so endless files such as /dev/zero are
/// refused. A UTF-8 byte order mark at the beginning is left out.
#pragma once

#include <cstdint>
#include <string>

namespace chorale {

/// Returns the bytes of a file or a pipe.
/// \throws std::runtime_error "cannot read <path>: <why>"
std::string read_file(const std::string& path);

/// Returns the bytes of a regular file of at most `most_bytes`. Refuses a pipe, because opening one waits for
/// a writer, and because only the first of several processes could read it.
/// \throws std::runtime_error "cannot read <path>: <why>", also if the file is longer
std::string read_plain_file(const std::string& path, uint64_t most_bytes);

/// Reads standard input until its end.
/// \throws std::runtime_error "cannot read standard input: <why>"
std::string read_standard_input();

}  // namespace chorale
