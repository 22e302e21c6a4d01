// On the CPU, exchanges run blocks as fibers, on the threads of the ranks that call.

#include <fmt/format.h>

#include "carrier.hpp"
#include "chorale/launch_cpu.hpp"
#include "executor/world/group.hpp"

namespace chorale::exchange {
namespace {

class CpuCarrier final : public Carrier {
 public:
  CpuCarrier(World& world, const ExchangeOptions& options)
      : world_(world), transport_(direct_rendezvous(world, rings(options))) {
    links_.table = transport_->table();
    links_.share_bytes = transport_->slot_bytes();
    reports_.resize(2 * size_t(world.ranks()) * transport_->max_channels());
    links_.reports = reports_.data();
  }

  const Links& links() const override { return links_; }
  void require_readable(const void*) const override {}

  void run(const Launch& launch, void*) override {
    const auto kernel = [&](const Group& block, const Deadline& deadline) {
      const Stop stop =
          run_messages(block, links_, launch.messages.data(), uint32_t(launch.messages.size()), deadline);
      if (stop == Stop::aborted && block.leader()) tell(launch, block.id);
      return stop;
    };
    LaunchName name{.what = "an exchange"};
    name.of_block = [&](uint32_t block) { return text_of(launch, block); };
    chorale::launch(*transport_, kernel, {.blocks = launch.blocks}, {}, name);
  }

  void check() override { world_.check(); }
  void synchronize(void*) override { world_.check(); }
  void reset() override {
    transport_->reset();
    reports_.assign(reports_.size(), {});
  }

 private:
  static RendezvousOptions rings(const ExchangeOptions& options) {
    const uint64_t slot = options.slot_bytes != 0 ? options.slot_bytes : uint64_t{128} << 10;
    RendezvousOptions made;
    made.depth = options.slots != 0 ? options.slots : 4;
    made.max_channels = options.blocks_per_peer != 0 ? options.blocks_per_peer : 1;
    made.per_peer_bytes = slot * made.depth * made.max_channels;
    return made;
  }

  static const Message* of_block(const Launch& launch, uint32_t block) {
    for (const Message& message : launch.messages)
      if (block >= message.block && block < uint32_t(message.block) + message.blocks) return &message;
    return nullptr;
  }

  /// Stops the world if a block found that the sender's size differs from the receiver's.
  void tell(const Launch& launch, uint32_t block) {
    const Message* const message = of_block(launch, block);
    if (!message || !message->receives) return;
    const uint32_t channel = block - message->block;
    const Report& report = reports_[report_at(links_.table, true, message->peer, channel)];
    if (load_acquire(&report.stop) == 0) return;
    world_.abort(fmt::format("rank {} in an exchange: {}", world_.rank(),
                             describe(report, world_.rank(), message->peer, true, channel)));
  }

  std::string text_of(const Launch& launch, uint32_t block) const {
    const Message* const message = of_block(launch, block);
    if (!message) return "";
    const uint32_t channel = block - message->block;
    const LinkState& link = *transport_->endpoint(message->peer, channel).local;
    if (message->receives) {
      return fmt::format("receiving from rank {}, channel {}: the peer's data has arrived up to byte {}",
                         message->peer, channel, load_relaxed(&link.data_ready.value));
    }
    return fmt::format("sending to rank {}, channel {}: the peer has read up to byte {}", message->peer,
                       channel, load_relaxed(&link.slot_free.value));
  }

  World& world_;
  const std::unique_ptr<Transport> transport_;
  std::vector<Report> reports_;
  Links links_;
};

}  // namespace

std::unique_ptr<Carrier> cpu_carrier(World& world, const ExchangeOptions& options) {
  return std::make_unique<CpuCarrier>(world, options);
}

}  // namespace chorale::exchange
