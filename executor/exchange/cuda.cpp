// On GPUs, exchanges run a kernel over rings in GPU memory.

#include <fmt/format.h>

#include <algorithm>

#include "carrier.hpp"
#include "chorale/next_launch.hpp"
#include "chorale/transport.hpp"
#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/cuda/device/host_words.hpp"
#include "executor/cuda/device/monitor.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"
#include "kernel.hpp"

namespace chorale::exchange {
namespace {

using cuda::CurrentDevice;

/// Messages up to this many bytes use one block, because with more blocks the signals would take longer than
/// the data.
constexpr uint64_t least_share = 8 << 10;

/// This many blocks saturate a link. More blocks help only if each gets a separate multiprocessor. When two
/// blocks share one, messages to all ranks move more slowly.
constexpr uint64_t full_link = 16;

/// Returns a number of blocks per peer and direction, such that each rank's GPU holds the blocks for all
/// peers at a time; collective.
/// \param limit  the most blocks for all peers; 0: any number. There is at least one per peer and direction
uint32_t blocks_that_fit(World& world, uint64_t limit) {
  const std::vector<cuda::RankDevice> devices = cuda::gather_devices(world);
  const cuda::RankDevice& mine = devices[size_t(world.rank())];
  const auto sharing = std::count_if(devices.begin(), devices.end(),
                                     [&](const cuda::RankDevice& other) { return other.same_device(mine); });
  uint64_t blocks = 0;
  world::collective_try(world, [&] {
    detail::Resident resident;
    cuda::check(resident_exchange_blocks(resident), "the kernel of an exchange");
    const uint64_t lines = uint64_t(sharing) * 2 * uint64_t(world.ranks());
    const uint64_t alone = uint64_t(resident.multiprocessors) / lines;
    blocks = std::min(resident.blocks() / lines, std::max(alone, full_link));
    if (limit != 0) blocks = std::min(blocks, limit / (2 * uint64_t(world.ranks())));
  });
  for (const auto& bytes : world.allgather(world::bytes_of(blocks)))
    blocks = std::min(blocks, world::read_as<uint64_t>(bytes));
  return uint32_t(std::clamp<uint64_t>(blocks, 1, 32));
}

RendezvousOptions rings(World& world, const ExchangeOptions& options, uint64_t limit) {
  const uint64_t slot = options.slot_bytes != 0 ? options.slot_bytes : uint64_t{128} << 10;
  const uint32_t fit = blocks_that_fit(world, limit);
  RendezvousOptions made;
  made.depth = options.slots != 0 ? options.slots : 4;
  made.max_channels = options.blocks_per_peer != 0 ? options.blocks_per_peer : fit;
  made.per_peer_bytes = slot * made.depth * made.max_channels;
  made.packet_bytes = unit_bytes + std::min(longest_in_packets, slot);
  made.space = Space::device;
  made.ring_at = RingAt::sender;  // received data is read once, and a GPU reads faster than it writes
  return made;
}

class CudaCarrier final : public Carrier, private cuda::Watched {
 public:
  CudaCarrier(World& world, const ExchangeOptions& options, const Config& config)
      : world_(world),
        transport_(direct_rendezvous(world, rings(world, options, config.max_blocks.value))),
        monitor_(world) {
    const uint64_t reports = 2 * uint64_t(world.ranks()) * transport_->max_channels();
    world::collective_try(world, [&] {
      detail::Resident resident;
      cuda::check(resident_exchange_blocks(resident), "the kernel of an exchange");
      resident_ = resident.blocks();
      require_resident(2 * uint64_t(world.ranks()) * transport_->max_channels(), resident_);
      reports_ = cuda::HostArray<Report>(reports);
    });
    links_.table = transport_->table();
    links_.share_bytes = std::min(least_share, transport_->slot_bytes());
    links_.reports = reports_.device();
    deadline_ = {transport_->device_abort_word(),
                 uint64_t(std::max<int64_t>(0, config.timeout.value.count())), 0};
    // Clear reports from before a reset of the world, because they would stop the world again.
    world.group().before_reset(world.rank(), this, [this] {
      const CurrentDevice on(transport_->device());
      cuda::check_quietly(cudaDeviceSynchronize(), "the end of what still runs");
      for (size_t at = 0; at < reports_.size(); ++at) store_relaxed(&reports_[at].stop, 0u);
    });
    monitor_.add(this);
  }
  ~CudaCarrier() override {
    monitor_.remove(this);
    world_.group().before_reset(world_.rank(), this, {});
  }

  const Links& links() const override { return links_; }
  size_t most_messages() const override { return KernelWork::most_messages; }
  void require_readable(const void* data) const override {
    cuda::require_readable(data, "message", transport_->device());
  }

  void run(const Launch& launch, void* stream) override {
    // Pass no stream, because Exchange documents which streams may run at the same time, and not the
    // transport.
    const Transport::Use use(*transport_, nullptr);
    const CurrentDevice on(transport_->device());
    KernelWork work;
    work.links = links_;
    work.deadline = deadline_;
    work.n = uint32_t(launch.messages.size());
    work.next_beside = detail::next_may_stand_beside(launch.blocks, resident_);
    std::copy(launch.messages.begin(), launch.messages.end(), work.messages);
    try {
      cuda::check(enqueue_exchange(work, launch.blocks, static_cast<cudaStream_t>(stream)),
                  "a launch of an exchange");
    } catch (const RunError& failed) {
      world_.abort(failed.what());  // otherwise peers would wait for this rank, which has launched nothing
      throw;
    }
  }

  void check() override { world_.check(); }
  void synchronize(void* stream) override {
    const CurrentDevice on(transport_->device());
    cuda::check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "the end of a stream's work");
    monitor_.look();
    check();
  }
  void reset() override { transport_->reset(); }

 private:
  static void require_resident(uint64_t blocks, uint64_t resident) {
    if (blocks <= resident) return;
    throw UsageError(fmt::format(
        "an exchange with all ranks takes {} blocks, which wait for each other, but this GPU holds {} "
        "at a time: set fewer blocks_per_peer",
        blocks, resident));
  }

  Stop stopped(std::string& report) const override {
    const uint32_t channels = links_.table.channels;
    const auto ranks = size_t(links_.table.ranks);
    const Report* late = nullptr;
    size_t late_at = 0;
    const auto text = [&](const Report& of, size_t at) {
      return "an exchange: " + describe(of, world_.rank(), int(at / channels % ranks), at / channels >= ranks,
                                        uint32_t(at % channels));
    };
    for (size_t at = 0; at < reports_.size(); ++at) {
      const Report& one = reports_[at];
      const auto stop = Stop(load_acquire(&one.stop));
      if (stop == Stop::aborted) {
        report = text(one, at);
        return stop;
      }
      if (stop != Stop::none && !late) late = &one, late_at = at;
    }
    if (!late) return Stop::none;
    report = text(*late, late_at);
    return Stop::timed_out;
  }

  World& world_;
  const std::unique_ptr<Transport> transport_;
  uint64_t resident_ = 0;  ///< the blocks of the kernel that this GPU holds at a time
  cuda::HostArray<Report> reports_;
  Links links_;
  Deadline deadline_;
  cuda::Monitor monitor_;  // the last member, because it reads the others
};

}  // namespace

std::unique_ptr<Carrier> cuda_carrier(World& world, const ExchangeOptions& options, const Config& config) {
  return std::make_unique<CudaCarrier>(world, options, config);
}

}  // namespace chorale::exchange
