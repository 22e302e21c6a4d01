#include "greeting.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "chorale/error.hpp"
#include "frames.hpp"

#ifndef CHORALE_VERSION
#error "the build defines CHORALE_VERSION for this file"
#endif

namespace chorale::bootstrap {
namespace {

// A greeting has four messages, each of a fixed size:
//   rank   -> rank 0  opener   version, protocol, whether it has a secret, port, rank, ranks, challenge
//   rank 0 -> rank    answer   version, protocol, whether it has a secret, challenge
//   rank   -> rank 0  proof    the rank's
//   rank 0 -> rank    outcome  a Refusal, and rank 0's proof if that is none
// A proof is a keyed hash of the role and of the whole opener and answer.
// In older versions, a hello had this letter, came without a greeting, and began with a version.
constexpr char opener_letter = 'h';
constexpr char answer_letter = 'c', proof_letter = 'p', outcome_letter = 'o';
constexpr char clients_role = 'r', servers_role = '0';

constexpr size_t front = head_bytes + 1;  // the bytes of the head and the letter
constexpr size_t version_bytes = 32;
constexpr size_t common_bytes = version_bytes + 2;  // the version, the protocol, and whether there is a
                                                    // secret
constexpr size_t claim_bytes = 2 + 4 + 4;
constexpr size_t opener_bytes = front + common_bytes + claim_bytes + sizeof(Challenge);
constexpr size_t answer_bytes = front + common_bytes + sizeof(Challenge);
constexpr size_t proof_bytes = crypto_auth_BYTES;
static_assert(crypto_auth_KEYBYTES == Secret::key_bytes);

std::string head_for(size_t bytes, char letter) { return head_of(bytes - head_bytes, letter); }

std::string version_line() { return fmt::format("{} (protocol {})", CHORALE_VERSION, Greeting::protocol); }

/// Returns a line with the version, padded with newlines, and then the bytes for the protocol and the secret.
std::string common(const Secret& secret) {
  std::string text = version_line();
  text.resize(version_bytes, '\n');
  return text + char(Greeting::protocol) + char(secret.given());
}

template <class Number>
void put_number(std::string& text, Number number) {
  for (size_t byte = sizeof number; byte-- > 0;) text += char(number >> (8 * byte));
}

template <class Number>
Number take_number(std::string_view& text) {
  Number number = 0;
  for (size_t byte = 0; byte < sizeof number; ++byte)
    number = Number(number << 8 | static_cast<unsigned char>(text[byte]));
  text.remove_prefix(sizeof number);
  return number;
}

std::string_view text_of(const Challenge& challenge) {
  return {reinterpret_cast<const char*>(challenge.data()), challenge.size()};
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// Returns the name of the protocol that begins with these bytes.
const char* protocol_of(std::string_view bytes) {
  for (const std::string_view word : {"GET ", "POST", "HEAD", "PUT ", "HTTP", "OPTI", "PRI "}) {
    if (bytes.starts_with(word)) return "HTTP";
  }
  if (bytes.starts_with("SSH")) return "SSH";
  if (bytes.starts_with("\x16\x03")) return "TLS";
  return "no protocol that is known here";
}

/// Compares the other end's version, protocol and use of a secret with those of this end. None of these is
/// secret.
Refusal compare_common(std::string_view part, const Secret& mine) {
  if (part[version_bytes] != char(Greeting::protocol)) return Refusal::other_protocol;
  const bool theirs = part[version_bytes + 1] != 0;
  if (theirs == mine.given()) return Refusal::none;
  return theirs ? Refusal::secret_wanted : Refusal::secret_missing;
}

}  // namespace

Challenge fresh_challenge() {
  Challenge challenge;
  [[maybe_unused]] const int started = sodium_init();  // if it fails, Secret has already thrown
  randombytes_buf(challenge.data(), challenge.size());
  return challenge;
}

std::string own_version() { return "Chorale " + version_line(); }

// -- Both sides

void Greeting::expect(const std::string& head, size_t bytes) {
  head_ = head;
  wanted_ = bytes;
  message_.clear();
}

void Greeting::fail(Refusal why) {
  state_ = State::failed;
  refusal_ = why;
}

std::string Greeting::take(std::string_view& bytes) {
  std::string out;
  while (state_ == State::open && !bytes.empty()) {
    const std::string_view more = bytes.substr(0, wanted_ - message_.size());
    const size_t had = std::min(message_.size(), head_.size());
    message_ += more;
    // Compare the head byte by byte as it arrives, because another program may never send a whole head.
    const size_t seen = std::min(message_.size(), head_.size());
    if (message_.compare(had, seen - had, head_, had, seen - had) != 0) return out + refuse_other_head();
    bytes.remove_prefix(more.size());
    if (message_.size() == wanted_) out += heard(std::string(message_));
  }
  return out;
}

std::string Greeting::refuse_other_head() {
  const size_t seen = std::min(message_.size(), magic.size());
  if (message_.compare(0, seen, magic, 0, seen) == 0) {
    fail(Refusal::other_protocol);
    return answer_to_other_protocol();
  }
  fail(Refusal::foreign);
  sounds_like_ = protocol_of(message_);
  return {};
}

std::string Greeting::proof(char role) const {
  const std::string all = std::string(1, role) + opener_ + answer_;
  std::string proof(proof_bytes, '\0');
  crypto_auth(reinterpret_cast<unsigned char*>(proof.data()), bytes_of(all), all.size(),
              secret_.key().data());
  return proof;
}

/// Returns whether a proof is right. It takes equally long for every wrong proof.
bool Greeting::proves(std::string_view proof, char role) const {
  const std::string all = std::string(1, role) + opener_ + answer_;
  return proof.size() == proof_bytes &&
         crypto_auth_verify(bytes_of(proof), bytes_of(all), all.size(), secret_.key().data()) == 0;
}

// -- The rank that calls

ClientsGreeting::ClientsGreeting(const Secret& secret, const Claim& claim, const Challenge& challenge)
    : Greeting(secret, challenge) {
  claim_ = claim;
  opener_ = head_for(opener_bytes, opener_letter) + common(secret);
  put_number(opener_, claim.port);
  put_number(opener_, claim.rank);
  put_number(opener_, claim.ranks);
  opener_ += text_of(challenge_);
  expect(head_for(answer_bytes, answer_letter), answer_bytes);
}

std::string ClientsGreeting::begin() { return opener_; }

std::string ClientsGreeting::heard(const std::string& message) {
  if (!answered_) {
    answered_ = true;
    const Refusal wrong = compare_common(std::string_view(message).substr(front, common_bytes), secret_);
    if (wrong != Refusal::none) return fail(wrong), std::string();
    answer_ = message;
    expect(head_for(front + 1 + proof_bytes, outcome_letter), front + 1 + proof_bytes);
    return head_for(front + proof_bytes, proof_letter) + proof(clients_role);
  }
  const bool accepted = message[front] == char(Refusal::none);
  if (accepted && proves(std::string_view(message).substr(front + 1), servers_role)) {
    finish();
  } else {
    fail(message[front] == char(Refusal::wrong_port) ? Refusal::wrong_port : Refusal::wrong_secret);
  }
  return {};
}

// -- Rank 0

ServersGreeting::ServersGreeting(const Secret& secret, uint16_t port, const Challenge& challenge)
    : Greeting(secret, challenge), port_(port) {
  expect(head_for(opener_bytes, opener_letter), opener_bytes);
}

std::string ServersGreeting::heard(const std::string& message) {
  if (!opened_) {
    opened_ = true;
    std::string_view rest = std::string_view(message).substr(front);
    const Refusal wrong = compare_common(rest.substr(0, common_bytes), secret_);
    if (wrong == Refusal::other_protocol) return fail(wrong), answer_to_other_protocol();
    opener_ = message;
    rest.remove_prefix(common_bytes);
    claim_.port = take_number<uint16_t>(rest);
    claim_.rank = take_number<uint32_t>(rest);
    claim_.ranks = take_number<uint32_t>(rest);
    answer_ = head_for(answer_bytes, answer_letter) + common(secret_);
    answer_ += text_of(challenge_);
    expect(head_for(front + proof_bytes, proof_letter), front + proof_bytes);
    if (wrong != Refusal::none) fail(wrong);  // the rank sees the mismatch in the answer
    return answer_;
  }
  const bool right = proves(std::string_view(message).substr(front), clients_role);
  const Refusal wrong = !right                 ? Refusal::wrong_secret
                        : claim_.port != port_ ? Refusal::wrong_port
                                               : Refusal::none;
  wrong == Refusal::none ? finish() : fail(wrong);
  return head_for(front + 1 + proof_bytes, outcome_letter) + char(wrong) +
         (wrong == Refusal::none ? proof(servers_role) : std::string(proof_bytes, '\0'));
}

/// Returns a `failed` frame, which all versions understand, with the letter of RunError::Reason::mismatch.
std::string ServersGreeting::answer_to_other_protocol() const {
  return encode(Frame{FrameKind::failed, char('a' + int(RunError::Reason::mismatch)) +
                                             fmt::format("rank 0 is {}, and this rank is another version; "
                                                         "start all ranks with the same version",
                                                         own_version())});
}

}  // namespace chorale::bootstrap
