#include "descriptors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>

#include "collective_try.hpp"
#include "executor/system/texts.hpp"
#include "group.hpp"

namespace chorale::world {
namespace {

constexpr size_t most_in_message = 200;  // the kernel takes 253

/// Represents the data of one message; the descriptors accompany it.
struct Header {
  uint64_t pass;  ///< the number of the pass, because a failed pass may have left messages behind
  uint32_t from, count;
};

union Rights {
  cmsghdr align;
  char bytes[CMSG_SPACE(most_in_message * sizeof(int))];
};

system::Descriptor take(const Process& from, int descriptor) {
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_getfd)
  const system::Descriptor process(int(syscall(SYS_pidfd_open, from.pid, 0)));
  if (process) {
    system::Descriptor taken(int(syscall(SYS_pidfd_getfd, process.get(), descriptor, 0)));
    if (taken) return taken;
  }
#else
  errno = ENOSYS;
#endif
  system::throw_errno(fmt::format("take descriptor {} of process {}", descriptor, from.pid));
}

/// Returns an abstract address, so that no file is left behind.
sockaddr_un address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof address.sun_path - 1));
  return address;
}

socklen_t length_of(const std::string& name) {
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

system::Descriptor make_socket() {
  system::Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made) system::throw_errno("make a Unix socket");
  return made;
}

/// Returns whether the peer is of this user. Every user of the machine may connect to an abstract name.
bool is_of_this_user(const system::Descriptor& connection) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

class Patience {
 public:
  explicit Patience(World& world) : world_(world) {}

  void wait_for(const system::Descriptor& readable) const {
    for (;;) {
      pollfd polled{.fd = readable.get(), .events = POLLIN, .revents = 0};
      if (poll(&polled, 1, 20) > 0) return;
      world_.check();
      if (std::chrono::steady_clock::now() - start_ > limit()) {
        throw RunError(RunError::Reason::timed_out, fmt::format("no descriptor of a peer arrived within {}",
                                                                system::seconds_text(limit())));
      }
    }
  }

 private:
  std::chrono::nanoseconds limit() const {
    return world_.timeout().count() > 0 ? world_.timeout() : std::chrono::seconds(30);
  }

  World& world_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Receives one message and appends its descriptors to `into`. Returns nothing if the sender has closed the
/// connection.
std::optional<Header> receive_message(const system::Descriptor& connection,
                                      std::vector<system::Descriptor>& into) {
  Header header{};
  Rights control{};
  iovec data{&header, sizeof header};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t bytes = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++at) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(part) + at * sizeof(int), sizeof descriptor);
      into.emplace_back(descriptor);
    }
  }
  if (bytes < 0) system::throw_errno("receive a peer's descriptors");
  if (bytes == 0) return std::nullopt;
  if (size_t(bytes) < sizeof header) {
    throw RunError(
        RunError::Reason::other,
        fmt::format("a peer's message with descriptors has {} bytes, expected {}", bytes, sizeof header));
  }
  if (message.msg_flags & MSG_CTRUNC) {
    errno = EMFILE;
    system::throw_errno("receive a peer's descriptors");
  }
  return header;
}

}  // namespace

DescriptorPassing::DescriptorPassing(World& world, std::optional<Method> method) {
  const Process self = this_process();
  for (const auto& bytes : world.allgather(bytes_of(self))) processes_.push_back(read_as<Process>(bytes));
  if (method) {
    method_ = *method;
  } else {
    try_taking(world);
  }
  if (method_ == Method::send) listen(world);
}

/// Tries to take one descriptor of each peer, because the permission depends on the peer.
void DescriptorPassing::try_taking(World& world) {
  int ends[2];
  const bool made = pipe2(ends, O_CLOEXEC) == 0;
  const system::Descriptor probe(made ? ends[0] : -1), other_end(made ? ends[1] : -1);
  const int mine = probe.get();
  std::byte may{1};
  const auto probes = world.allgather(bytes_of(mine));
  for (int peer = 0; peer < world.ranks(); ++peer) {
    if (peer == world.rank() || !world.group().on_one_host(peer, world.rank())) continue;
    try {
      take(processes_[peer], read_as<int>(probes[peer]));
    } catch (const RunError&) {
      may = std::byte{0};
    }
  }
  // This is also the barrier after which the probe may close.
  for (const auto& answer : world.allgather(bytes_of(may))) {
    if (answer[0] == std::byte{0}) method_ = Method::send;
  }
}

void DescriptorPassing::listen(World& world) {
  static std::atomic<uint64_t> count{0};
  const std::string name =
      fmt::format("chorale-{}-{}-{}", processes_[world.rank()].pid, processes_[world.rank()].start, ++count);
  collective_try(world, [&] {
    listener_ = make_socket();
    const sockaddr_un address = address_of(name);
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length_of(name)) != 0 ||
        ::listen(listener_.get(), 2 * world.ranks()) != 0) {
      system::throw_errno(fmt::format("listen at Unix socket '{}'", name));
    }
  });
  for (const auto& bytes : world.allgather(std::as_bytes(std::span(name)))) {
    sockets_.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

std::vector<DescriptorPassing::Offer> DescriptorPassing::gather(World& world, std::span<const int> mine,
                                                                const std::vector<bool>& wanted) const {
  // The words start with one flag per rank, which tells whether its descriptors are wanted. The descriptors
  // follow.
  std::vector<int> words(wanted.begin(), wanted.end());
  words.insert(words.end(), mine.begin(), mine.end());
  std::vector<Offer> offers;
  for (const auto& bytes : world.allgather(std::as_bytes(std::span(words)))) {
    std::vector<int> theirs(bytes.size() / sizeof(int));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    const auto middle = theirs.begin() + world.ranks();
    offers.push_back({{middle, theirs.end()}, {theirs.begin(), middle}});
  }
  return offers;
}

std::vector<std::vector<system::Descriptor>> DescriptorPassing::pass(World& world, std::span<const int> mine,
                                                                     const std::vector<bool>& wanted) {
  const std::vector<Offer> offers = gather(world, mine, wanted);
  ++passes_;
  std::vector<std::vector<system::Descriptor>> all(world.ranks());
  if (method_ == Method::take) {
    collective_try(world, [&] {
      for (int peer = 0; peer < world.ranks(); ++peer) {
        if (!wanted[peer]) continue;
        for (const int descriptor : offers[peer].descriptors) {
          all[peer].push_back(take(processes_[peer], descriptor));
        }
      }
    });
    return all;
  }
  // All ranks send before any rank receives, so that no rank waits for a message that could not be sent. Sent
  // messages stay in the receiver's socket.
  collective_try(world, [&] {
    for (int peer = 0; peer < world.ranks(); ++peer) {
      if (offers[peer].wanted[world.rank()] && !mine.empty()) send_to(world, peer, mine);
    }
  });
  collective_try(world, [&] { receive(world, offers, all); });
  return all;
}

void DescriptorPassing::send_to(const World& world, int peer, std::span<const int> descriptors) {
  const system::Descriptor connection = make_socket();
  const sockaddr_un address = address_of(sockets_[peer]);
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), length_of(sockets_[peer])) !=
      0) {
    system::throw_errno(
        fmt::format("connect to rank {} at Unix socket '{}' (the ranks must share a network namespace)", peer,
                    sockets_[peer]));
  }
  for (size_t done = 0; done < descriptors.size(); done += most_in_message) {
    const auto part = descriptors.subspan(done, std::min(most_in_message, descriptors.size() - done));
    Header header{passes_, uint32_t(world.rank()), uint32_t(part.size())};
    Rights control{};
    iovec data{&header, sizeof header};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(part.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(part.size_bytes());
    std::memcpy(CMSG_DATA(rights), part.data(), part.size_bytes());
    if (sendmsg(connection.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) != ssize_t(sizeof header)) {
      system::throw_errno(fmt::format("send descriptors to rank {}", peer));
    }
  }
}

void DescriptorPassing::receive(World& world, const std::vector<Offer>& offers,
                                std::vector<std::vector<system::Descriptor>>& all) {
  const Patience patience(world);
  const auto complete = [&](int peer) {
    return !offers[world.rank()].wanted[peer] || all[peer].size() >= offers[peer].descriptors.size();
  };
  const auto missing = [&] {
    for (int peer = 0; peer < world.ranks(); ++peer) {
      if (!complete(peer)) return true;
    }
    return false;
  };
  while (missing()) {
    patience.wait_for(listener_);
    const system::Descriptor connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) system::throw_errno("accept a peer's connection");
    if (!is_of_this_user(connection)) continue;
    for (;;) {
      patience.wait_for(connection);
      std::vector<system::Descriptor> came;
      const std::optional<Header> header = receive_message(connection, came);
      // A failed pass may have left messages behind; skip them. All messages of this pass have already been
      // sent.
      if (!header || header->pass != passes_) break;
      if (header->from >= uint32_t(world.ranks()) || header->count != came.size()) {
        throw RunError(RunError::Reason::other,
                       fmt::format("a message of rank {} announces {} descriptors but holds {}", header->from,
                                   header->count, came.size()));
      }
      std::move(came.begin(), came.end(), std::back_inserter(all[header->from]));
      if (complete(int(header->from))) break;
    }
  }
}

}  // namespace chorale::world
