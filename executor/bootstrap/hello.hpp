/// \file
/// A rank says a Hello when it comes to a rendezvous.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace chorale::net {

/// Says where a process runs. Two processes share memory if all but the name agree. The name is for people.
struct Host {
  std::string name;
  std::string boot;    ///< the kernel's boot id
  std::string shared;  ///< which /dev/shm, and which process namespace: containers have their own
  std::string user;    ///< numeric id
  std::string label;   ///< JoinOptions::host

  bool shares_memory_with(const Host& other) const {
    return boot == other.boot && shared == other.shared && user == other.user && label == other.label;
  }
};

struct Hello {
  std::string version;
  int rank = 0, ranks = 0;
  int pid = 0;
  Host host;

  std::string process_text() const;  ///< "pid 123 on node7"
};

/// Returns the hello of this process.
/// \param label  see JoinOptions::host
Hello hello_of(int rank, int ranks, const std::string& label = {});

std::string encode(const Hello&);

/// Reads a hello. Returns none if `text` is no hello. In a hello of another version of Chorale, only the
/// version is sure to be right.
std::optional<Hello> decode_hello(const std::string& text);

/// Returns why these ranks share no memory although they are on one machine. It names users and ranks. It is
/// empty if they share memory, are on several machines, or say by labels that they should be apart.
/// \param ranks  one hello a rank
std::string why_apart(const std::vector<Hello>& ranks);

}  // namespace chorale::net
