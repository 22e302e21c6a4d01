/// \file
/// What a rank says of itself when it comes to a rendezvous.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace chorale::net {

/// Where a process runs. Two share memory if all but the name agree.
struct Host {
  std::string name;
  std::string boot;    ///< the kernel's boot id
  std::string shared;  ///< which /dev/shm, and which process namespace: containers have their own
  std::string user;    ///< numeric id

  bool shares_memory_with(const Host& other) const {
    return boot == other.boot && shared == other.shared && user == other.user;
  }
};

struct Hello {
  std::string version;
  int rank = 0, ranks = 0;
  int pid = 0;
  Host host;

  std::string process_text() const;  ///< "pid 123 on node7"
};

/// Of this process.
Hello hello_of(int rank, int ranks);

std::string encode(const Hello&);

/// None if it is no hello. Of another version only the version is sure to be right.
std::optional<Hello> decode_hello(const std::string& text);

/// Why these, one a rank, cannot share memory: names hosts and ranks. Empty if they can.
std::string why_apart(const std::vector<Hello>& ranks);

}  // namespace chorale::net
