/// \file
/// A greeting authenticates the two ends of a connection to each other, before either reads anything else.
///
/// A greeting takes and returns bytes. It does not use sockets or clocks. docs/decisions/0022-who-may-join.md
/// explains the design of its messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "secret.hpp"

namespace chorale::bootstrap {

/// Holds random bytes of one end, so that a recorded message cannot be used in another greeting.
using Challenge = std::array<unsigned char, 32>;
Challenge fresh_challenge();

/// Identifies a rank in its first message. The proofs of both ends include it.
struct Claim {
  uint32_t rank = 0, ranks = 0;
  uint16_t port = 0;  ///< the port of the address that it calls
};

/// Tells why a greeting has failed, seen from this end.
enum class Refusal : uint8_t {
  none,
  foreign,         ///< the other end is not Chorale
  other_protocol,  ///< the other end is a version of Chorale with another greeting
  secret_wanted,   ///< the other end has a secret, and this end has none
  secret_missing,  ///< the other end has no secret, and this end has one
  wrong_secret,    ///< the secrets differ
  wrong_port       ///< the other end knows the secret, but has called the address of another world
};

/// Runs one end's part of the greeting. It stores a few hundred bytes at most, whatever arrives.
class Greeting {
 public:
  enum class State : uint8_t { open, done, failed };

  static constexpr uint8_t protocol = 2;

  virtual ~Greeting() = default;

  /// Returns the bytes to send before any have arrived.
  virtual std::string begin() = 0;

  /// Processes arrived bytes and removes them from the front of `bytes`. It leaves bytes that follow the
  /// greeting.
  /// \returns the bytes to send, including those that report a failure to the other end
  std::string take(std::string_view& bytes);

  State state() const { return state_; }
  Refusal refusal() const { return refusal_; }
  /// Returns, for Refusal::foreign, the known protocol that the other end seems to use, such as "SSH" or
  /// "HTTP". It never shows the bytes.
  const char* sounds_like() const { return sounds_like_; }
  /// Returns the rank's claim. On rank 0's end it is proved when the greeting is done.
  const Claim& claim() const { return claim_; }

 protected:
  Greeting(const Secret& secret, const Challenge& challenge) : secret_(secret), challenge_(challenge) {}

  /// Sets the next message that the greeting expects: `bytes` bytes that begin with this head.
  void expect(const std::string& head, size_t bytes);
  void finish() { state_ = State::done; }
  void fail(Refusal why);
  std::string proof(char role) const;
  bool proves(std::string_view proof, char role) const;

  virtual std::string heard(const std::string& message) = 0;
  /// Returns the bytes to send to a version of Chorale with another greeting.
  virtual std::string answer_to_other_protocol() const { return {}; }

  const Secret secret_;
  const Challenge challenge_;  ///< this end's challenge
  Claim claim_;
  std::string opener_, answer_;  ///< the first messages of both ends, from which the proofs are computed

 private:
  std::string refuse_other_head();

  State state_ = State::open;
  Refusal refusal_ = Refusal::none;
  const char* sounds_like_ = "";
  std::string head_, message_;  ///< the expected head, and the part of the message that has arrived
  size_t wanted_ = 0;
};

/// Represents the end of a rank that calls rank 0.
class ClientsGreeting final : public Greeting {
 public:
  ClientsGreeting(const Secret& secret, const Claim& claim, const Challenge& challenge = fresh_challenge());
  std::string begin() override;

 private:
  std::string heard(const std::string& message) override;
  bool answered_ = false;
};

/// Represents rank 0's end.
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

/// Returns the version of this build, such as "Chorale 0.1.0 (protocol 2)".
std::string own_version();

}  // namespace chorale::bootstrap
