/// \file
/// A carrier moves the messages of an exchange, with threads on the CPU or with a kernel on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chorale/exchange.hpp"
#include "messages.hpp"

namespace chorale::exchange {

/// Holds the messages of one launch and its number of blocks.
struct Launch {
  std::vector<Message> messages;
  uint32_t blocks = 0;
};

class Carrier {
 public:
  virtual ~Carrier() = default;

  virtual const Links& links() const = 0;
  /// Returns the most messages per launch.
  virtual size_t most_messages() const { return std::numeric_limits<size_t>::max(); }

  /// Checks that the carrier can read `data`.
  /// \throws UsageError if it cannot
  virtual void require_readable(const void* data) const = 0;
  virtual void run(const Launch& launch, void* stream) = 0;
  virtual void check() = 0;
  virtual void synchronize(void* stream) = 0;
  virtual void reset() = 0;
};

// Both functions are collective.
std::unique_ptr<Carrier> cpu_carrier(World& world, const ExchangeOptions& options);
/// \throws UsageError in a build without CUDA
std::unique_ptr<Carrier> cuda_carrier(World& world, const ExchangeOptions& options, const Config& config);

/// Divides the messages into launches, in the order in which the launches run. There are several launches if
/// there are more than `most_messages` messages. Each of them then has as many messages of a peer and
/// direction as the peer's launches have.
std::vector<Launch> launches_of(std::span<const SendTo> sends, std::span<const RecvFrom> recvs,
                                const Links& links, size_t most_messages);

/// Returns the text of a report, such as "rank 0 sends 5 bytes to rank 1, which receives 6; ...".
std::string describe(const Report& report, int self, int peer, bool receives, uint32_t channel);

}  // namespace chorale::exchange
