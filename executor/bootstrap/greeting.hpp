/// \file
/// The two ends of a connection authenticate each other here, before either reads anything else.
///
/// Bytes go in and bytes come out: nothing here knows of sockets or clocks.
/// docs/decisions/0022-who-may-join.md says why the messages are as they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "secret.hpp"

namespace chorale::net {

/// Holds random bytes of one end, so that a recorded message is of no use in another greeting.
using Challenge = std::array<unsigned char, 32>;
Challenge fresh_challenge();

/// Says who a rank is, in its first message. The proofs of both ends are made of it.
struct Claim {
  uint32_t rank = 0, ranks = 0;
  uint16_t port = 0;  ///< of the address under which it calls
};

/// Says why a greeting has failed, as the end that holds it sees it.
enum class Refusal : uint8_t {
  none,
  foreign,         ///< the other end does not speak as any version of Chorale does
  other_protocol,  ///< it is a version of Chorale whose greeting is another
  secret_wanted,   ///< it has a secret, and this end has none
  secret_missing,  ///< it has none, and this end has one
  wrong_secret,    ///< its secret is another
  wrong_port       ///< it knows the secret, and has called the address of another world
};

/// A Greeting is one end's part of it. It holds a few hundred bytes at most, whatever comes.
class Greeting {
 public:
  enum class State : uint8_t { open, done, failed };

  static constexpr uint8_t protocol = 2;

  virtual ~Greeting() = default;

  /// Returns the bytes to send before any have come.
  virtual std::string begin() = 0;

  /// Takes what has come off the front of `bytes`, but not what follows the greeting.
  /// \returns the bytes to send, also those that tell the other end of a failure
  std::string take(std::string_view& bytes);

  State state() const { return state_; }
  Refusal refusal() const { return refusal_; }
  /// Returns, for Refusal::foreign, which of a few known protocols this sounds like: "SSH" or "HTTP". It
  /// never shows the bytes.
  const char* sounds_like() const { return sounds_like_; }
  /// Returns the rank's claim. On rank 0's side it is proved once the greeting is done.
  const Claim& claim() const { return claim_; }

 protected:
  Greeting(const Secret& secret, const Challenge& challenge) : secret_(secret), challenge_(challenge) {}

  /// Expects next a message of `bytes` bytes that begins with this head.
  void expect(const std::string& head, size_t bytes);
  void finish() { state_ = State::done; }
  void fail(Refusal why);
  std::string proof(char role) const;
  bool proves(std::string_view proof, char role) const;

  virtual std::string heard(const std::string& message) = 0;
  /// Returns what to say to a version of Chorale that greets in another way.
  virtual std::string answer_to_other_protocol() const { return {}; }

  const Secret secret_;
  const Challenge challenge_;  ///< of this end
  Claim claim_;
  std::string opener_, answer_;  ///< the first messages of both, of which proofs are made

 private:
  std::string refuse_other_head();

  State state_ = State::open;
  Refusal refusal_ = Refusal::none;
  const char* sounds_like_ = "";
  std::string head_, message_;  ///< the head that is expected, and as much of the message as has come
  size_t wanted_ = 0;
};

/// This is the side of a rank that calls.
class ClientsGreeting final : public Greeting {
 public:
  ClientsGreeting(const Secret& secret, const Claim& claim, const Challenge& challenge = fresh_challenge());
  std::string begin() override;

 private:
  std::string heard(const std::string& message) override;
  bool answered_ = false;
};

/// This is the side of rank 0, which is called.
class ServersGreeting final : public Greeting {
 public:
  ServersGreeting(const Secret& secret, uint16_t port, const Challenge& challenge = fresh_challenge());
  std::string begin() override { return {}; }

 private:
  std::string heard(const std::string& message) override;
  std::string answer_to_other_protocol() const override;

  const uint16_t port_;
  bool opened_ = false;
};

/// Returns the version of this build, as in "Chorale 0.1.0 (protocol 2)".
std::string own_version();

}  // namespace chorale::net
