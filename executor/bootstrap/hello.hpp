/// \file
/// A Hello is the message in which a rank introduces itself to the server of a rendezvous.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace chorale::bootstrap {

/// Describes where a process runs. Two processes share memory if all members except `name` agree. The name is
/// only for messages.
struct Host {
  std::string name;
  std::string boot;    ///< the kernel's boot id
  std::string shared;  ///< identifies /dev/shm and the process namespace, which differ between containers
  std::string user;    ///< the numeric user id
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
/// \param label  JoinOptions::host
Hello hello_of(int rank, int ranks, const std::string& label = {});

std::string encode(const Hello&);

/// Decodes a hello. Returns none if `text` is not a hello. In a hello of another version of Chorale, rely
/// only on the version.
std::optional<Hello> decode_hello(const std::string& text);

/// Returns why these ranks share no memory although they are on one machine, with users and ranks. Returns ""
/// if they share memory, are on several machines, or have different labels.
/// \param ranks  one hello per rank
std::string why_apart(const std::vector<Hello>& ranks);

/// Returns whether all ranks are threads of one process.
/// \param ranks  one hello per rank
bool in_one_process(const std::vector<Hello>& ranks);

/// Returns why these ranks cannot join by an invitation, because they are on several hosts or because some
/// but not all are threads of one process. Returns "" if they can.
/// \param ranks  one hello per rank
std::string why_no_invitation(const std::vector<Hello>& ranks);

}  // namespace chorale::bootstrap
