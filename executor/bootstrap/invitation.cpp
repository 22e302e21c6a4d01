#include "chorale/invitation.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "executor/system/thread.hpp"
#include "rendezvous.hpp"
#include "session.hpp"

namespace chorale::bootstrap {
namespace {

/// Lists what the bytes of an invitation hold. Only processes of the machine that made it use them, so
/// numbers have its byte order.
struct InvitationParts {
  static constexpr char known_magic[8] = {'c', 'h', 'o', 'r', 'i', 'n', 'v', 1};  // the last is the version

  char magic[8];
  unsigned char secret[32];
  uint64_t machine;   ///< identifies the machine since its last boot
  uint64_t network;   ///< identifies the network namespace
  char host[30];      ///< the beginning of the host's name, then zeros
  uint16_t port;      ///< on 127.0.0.1
  uint64_t checksum;  ///< of all bytes before
};
static_assert(sizeof(InvitationParts) == Invitation::bytes && alignof(InvitationParts) == 8);

uint64_t hash_of(std::string_view bytes) {
  unsigned char hash[crypto_generichash_BYTES_MIN];
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                     nullptr, 0);
  uint64_t number = 0;
  std::memcpy(&number, hash, sizeof number);
  return number;
}

uint64_t checksum_of(const InvitationParts& parts) {
  return hash_of({reinterpret_cast<const char*>(&parts), offsetof(InvitationParts, checksum)});
}

uint64_t this_network() {
  struct stat space {};
  stat("/proc/self/ns/net", &space);
  return hash_of(fmt::format("{:x}:{:x}", space.st_dev, space.st_ino));
}

/// Makes the secret that the greetings use.
Secret secret_of(const InvitationParts& parts) {
  char letters[2 * sizeof parts.secret + 1];
  Secret secret = Secret::read(sodium_bin2hex(letters, sizeof letters, parts.secret, sizeof parts.secret));
  sodium_memzero(letters, sizeof letters);
  return secret;
}

Address address_of(const InvitationParts& parts) { return {"127.0.0.1", parts.port}; }

/// Opens a port of 127.0.0.1 and listens there.
std::pair<system::Descriptor, uint16_t> listen_somewhere() {
  constexpr const char* what = "listen on 127.0.0.1 for the ranks of an invitation";
  system::Descriptor file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!file) system::throw_errno(what);
  file.close_in_forks();
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof own;
  if (::bind(file.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      ::listen(file.get(), SOMAXCONN) != 0 ||
      ::getsockname(file.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0)
    system::throw_errno(what);
  return {std::move(file), ntohs(own.sin_port)};
}

/// Blocks all signals of the calling thread while it lives. A thread that starts meanwhile inherits that.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

std::array<std::byte, Invitation::bytes> make_invitation() {
  InvitationParts parts{};
  std::memcpy(parts.magic, InvitationParts::known_magic, sizeof parts.magic);
  const Hello mine = hello_of(-1, 0);  // this process is no rank here
  const Secret starts_sodium;
  randombytes_buf(parts.secret, sizeof parts.secret);
  parts.machine = hash_of(mine.host.boot);
  parts.network = this_network();
  mine.host.name.copy(parts.host, sizeof parts.host - 1);
  auto [listening, port] = listen_somewhere();
  parts.port = port;
  parts.checksum = checksum_of(parts);
  auto session = std::make_unique<Session>(address_of(parts), mine, std::chrono::nanoseconds(0),
                                           secret_of(parts), JoinBy::invitation);
  const NoSignals in_the_thread;
  system::start_thread("the rendezvous of an invitation", [session = std::move(session),
                                                           listening = std::move(listening)]() mutable {
    serve_invitation(*session, std::move(listening));
  }).detach();
  std::array<std::byte, Invitation::bytes> bytes;
  std::memcpy(bytes.data(), &parts, sizeof parts);
  sodium_memzero(parts.secret, sizeof parts.secret);
  return bytes;
}

InvitationParts parts_of(std::span<const std::byte> bytes) {
  InvitationParts parts;
  std::memcpy(&parts, bytes.data(), sizeof parts);
  return parts;
}

/// Checks that this rank can reach the process that made the invitation.
void check_place(const InvitationParts& parts, const Hello& mine) {
  const bool elsewhere = parts.machine != hash_of(mine.host.boot);
  if (!elsewhere && parts.network == this_network()) return;
  std::string host(parts.host, strnlen(parts.host, sizeof parts.host));
  std::replace_if(
      host.begin(), host.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  if (elsewhere) {
    throw RunError(
        Reason::mismatch,
        fmt::format("the invitation was made on host {}, and rank {} runs on host {}: an invitation makes a "
                    "world of one host; ranks of several hosts join at tcp://host:port",
                    host, mine.rank, mine.host.name));
  }
  throw RunError(
      Reason::mismatch,
      fmt::format("the invitation was made on {}, and rank {} runs on {}, on the same machine but in another "
                  "network namespace: run them in one container, or the containers with --net=host "
                  "--ipc=host --pid=host",
                  host, mine.rank, mine.host.name));
}

}  // namespace

Rendezvous rendezvous(const Invitation& invitation, const Hello& mine, std::chrono::nanoseconds timeout) {
  const InvitationParts parts = parts_of(invitation.encode());
  check_place(parts, mine);
  const Address address = address_of(parts);
  return connected(mine, "by their invitation", [&] {
    Session session(address, mine, timeout, secret_of(parts), JoinBy::invitation);
    return connect_to_server(session);
  });
}

}  // namespace chorale::bootstrap

namespace chorale {

Invitation Invitation::make() {
  Invitation invitation;
  try {
    invitation.data_ = bootstrap::make_invitation();
  } catch (const boost::system::system_error& error) {
    bootstrap::throw_if_full(error.code(), "make an invitation");
    throw RunError(RunError::Reason::other, fmt::format("cannot make an invitation: {}", error.what()));
  }
  return invitation;
}

std::optional<Invitation> Invitation::decode(std::span<const std::byte> data) {
  using bootstrap::InvitationParts;
  if (data.size() != bytes) return std::nullopt;
  const InvitationParts parts = bootstrap::parts_of(data);
  if (std::memcmp(parts.magic, InvitationParts::known_magic, sizeof parts.magic) != 0 ||
      parts.checksum != bootstrap::checksum_of(parts) || parts.port == 0)
    return std::nullopt;
  Invitation invitation;
  std::copy(data.begin(), data.end(), invitation.data_.begin());
  return invitation;
}

}  // namespace chorale
