/// \file
/// What runs the messages of an exchange: threads of the CPU, or a kernel.
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

/// Messages of one launch, with their blocks.
struct Launch {
  std::vector<Message> messages;
  uint32_t blocks = 0;
};

class Carrier {
 public:
  virtual ~Carrier() = default;

  virtual const Links& links() const = 0;
  /// Of a launch.
  virtual size_t most_messages() const { return std::numeric_limits<size_t>::max(); }

  /// \throws UsageError for memory that cannot be read there
  virtual void require_readable(const void* data) const = 0;
  virtual void run(const Launch& launch, void* stream) = 0;
  virtual void check() = 0;
  virtual void synchronize(void* stream) = 0;
  virtual void reset() = 0;
};

// Collective.
std::unique_ptr<Carrier> cpu_carrier(World& world, const ExchangeOptions& options);
/// \throws UsageError in a build without CUDA
std::unique_ptr<Carrier> cuda_carrier(World& world, const ExchangeOptions& options, const Config& config);

/// The messages in the order in which they are launched. More than one launch where there are more than
/// `most_messages`: cut such that each has as many messages of a peer and direction as the peer's launches.
std::vector<Launch> launches_of(std::span<const SendTo> sends, std::span<const RecvFrom> recvs,
                                const Links& links, size_t most_messages);

/// What a report says: "rank 0 sends 5 bytes to rank 1, which receives 6; ...".
std::string describe(const Report& report, int self, int peer, bool receives, uint32_t channel);

}  // namespace chorale::exchange
