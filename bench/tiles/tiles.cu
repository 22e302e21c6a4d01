// Compares sends and receives of the device library between two GPUs with the copy engine and NCCL, in one
// run:
//   bench_tiles --help
// It prints a line for each size, number of blocks and form. It compares every result with the sent data
// before it times it. Exit status 0: the goals of bench/README.md are met, 1: they are not, 2: a result is
// wrong, 3: it did not run.
// is wrong, 3: it did not run.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chorale/launch.cuh>
#include <chorale/one_sided_window.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/common/processes.hpp"
#include "bench/common/timing.hpp"
#include "bench/tiles/bulk.cuh"
#include "executor/cuda/memory/peer_memory.hpp"
#include "tools/bench/nccl.hpp"
#include "tools/command.hpp"

using namespace chorale;

namespace {

void check(cudaError_t result) { detail::check_cuda(result, "bench_tiles"); }

__global__ void fill(uint32_t* data, uint64_t n, uint32_t seed) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < n;
       at += uint64_t(gridDim.x) * blockDim.x) {
    data[at] = uint32_t(at * 2654435761u) ^ seed;
  }
}
__global__ void compare(const uint32_t* data, uint64_t n, uint32_t seed, uint32_t* wrong) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < n;
       at += uint64_t(gridDim.x) * blockDim.x) {
    if (data[at] != (uint32_t(at * 2654435761u) ^ seed)) atomicAdd(wrong, 1u);
  }
}

enum class Way { one, both };

/// Describes one way to move tiles.
struct Form {
  uint32_t threads = 512;  ///< the number of threads of a block
  uint32_t parts = 1;      ///< the number of groups of warps into which a block is cut
  uint64_t slot = 0;       ///< the bytes of a slot of the ring
  bool bulk = false;       ///< true: by bulk copies; parts is then 1
  bool port = false;       ///< true: by a proxy and the copy engine
  RingAt ring_at = RingAt::receiver;

  const char* name() const {
    return port ? "port" : bulk ? "bulk" : ring_at == RingAt::sender ? "pulled" : "tiles";
  }
};

constexpr uint64_t most_as_packets = 64 << 10;  ///< the largest message that is sent as packets, in bytes

template <class Produce, class Fabric>
struct OneWay {
  EndpointTable table;
  Leg message;
  bool sends;
  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(1 - table.self, group.id);
    const Leg share = share_of(message, group.id, group.count);
    return sends ? send_tiles<uint32_t, Fabric>(group, e, share, Produce{}, deadline)
                 : recv_tiles<uint32_t, Fabric>(group, e, share, CopyConsume{}, deadline);
  }
};

/// Sends with half of the groups and receives with the other half.
template <class Produce, class Fabric>
struct BothWays {
  EndpointTable table;
  Leg message;
  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const Split role = group.split_interleaved(2);
    const Endpoint& e = table.at(1 - table.self, role.group.id);
    const Leg share = share_of(message, role.group.id, role.group.count);
    return role.part == 0 ? send_tiles<uint32_t, Fabric>(role.group, e, share, Produce{}, deadline)
                          : recv_tiles<uint32_t, Fabric>(role.group, e, share, CopyConsume{}, deadline);
  }
};

/// Runs a kernel in which each part of a block has its own channel. While one part waits until its stores
/// have landed, so that it may signal, another part stores.
template <class Kernel>
struct InParts {
  Kernel kernel;
  uint32_t parts;
  CHORALE_FN Stop operator()(const Group& block, const Deadline& deadline) const {
    return block.agree(kernel(multiwarp_group(block, block.size / parts), deadline));
  }
};

/// Sends the message as packets. When both ways run, each block sends and receives its share.
struct AsPackets {
  EndpointTable table;
  Leg message;
  bool sends, receives;
  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(1 - table.self, group.id);
    const Leg share = share_of(message, group.id, group.count);
    Stop stop = Stop::none;
    if (sends) stop = send_packets<LL16, uint32_t>(group, e, share, CopyProduce{}, deadline);
    if (stop == Stop::none && receives)
      stop = recv_packets<LL16, uint32_t>(group, e, share, CopyConsume{}, deadline);
    return stop;
  }
};

/// Moves the message directly between a rank's buffer and its peer's window, without a ring or a copy. The
/// rank that offers the window arrives when its block is ready. The rank that moves the share arrives when it
/// has written or read the share.
struct ThroughWindow {
  WindowView window;
  Leg message;
  bool offers, moves;
  bool gets;
  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const int32_t peer = 1 - window.self;
    const uint32_t ready = 2 * group.id, moved = ready + 1;
    if (offers) arrive_at(group, window, peer, ready);
    if (moves) {
      const Stop stop = wait_all(group, window, ready, deadline);
      if (stop != Stop::none) return stop;
      const Leg share = share_of(message, group.id, group.count);
      if (gets) {
        get(group, window, peer, share.begin, static_cast<char*>(share.out) + share.begin, share.bytes);
      } else {
        put(group, window, peer, share.begin, static_cast<const char*>(share.in) + share.begin, share.bytes);
      }
      arrive_at(group, window, peer, moved);
    }
    return offers ? wait_all(group, window, moved, deadline) : Stop::none;
  }
};

constexpr uint32_t most_blocks_of_windows = 128;

class Bench {
 public:
  Bench(World& world, uint64_t largest)
      : world_(world),
        imports_(world),
        receives_(world.rank() == 1),
        window_(OneSidedWindow::create(world, largest, 0, 2 * most_blocks_of_windows, Space::device)) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cudaEventCreate(&begin_));
    check(cudaEventCreate(&end_));
    check(cudaMalloc(&in_, largest));
    check(cudaMalloc(&out_, largest));
    check(cudaMalloc(&wrong_, sizeof(uint32_t)));
    peers_ = cuda::PeerMemory::exchange(world, imports_, out_, largest);
    nccl_ = tools::Nccl::join(world, why_no_nccl_);
  }

  /// Holds the places from which a message is sent and where it arrives.
  struct Ends {
    uint32_t *message, *result;
  };
  template <class Call>
  double time(Way way, uint64_t bytes, const Call& call) {
    return time(way, bytes, call, {in_, out_});
  }

  /// Returns the microseconds of one call on the slower rank. It checks the result first.
  template <class Call>
  double time(Way way, uint64_t bytes, const Call& call, const Ends& ends) {
    const uint64_t n = bytes / 4;
    uint32_t* const result = ends.result;
    fill<<<64, 256, 0, stream_>>>(ends.message, n, uint32_t(world_.rank()) + 1);
    check(cudaMemsetAsync(result, 0xee, bytes, stream_));
    check(cudaStreamSynchronize(stream_));
    world_.barrier();
    call();
    check(cudaStreamSynchronize(stream_));
    world_.barrier();
    if (way == Way::both || receives_) {
      check(cudaMemsetAsync(wrong_, 0, sizeof(uint32_t), stream_));
      compare<<<64, 256, 0, stream_>>>(result, n, uint32_t(1 - world_.rank()) + 1, wrong_);
      uint32_t wrong = 0;
      check(cudaMemcpyAsync(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost, stream_));
      check(cudaStreamSynchronize(stream_));
      if (wrong != 0) {
        std::fprintf(stderr, "%u of %llu elements are wrong\n", wrong, (unsigned long long)n);
        std::_Exit(bench::result_wrong);
      }
    }
    const int calls = bytes <= 1 << 20 ? 200 : bytes <= 64 << 20 ? 50 : 10;
    const bench::Graph graph(stream_, calls, [&](cudaStream_t) { call(); });
    graph.launch();
    check(cudaStreamSynchronize(stream_));
    double best = 1e30;
    for (int round = 0; round < 5; ++round) {
      world_.barrier();
      check(cudaEventRecord(begin_, stream_));
      graph.launch();
      check(cudaEventRecord(end_, stream_));
      check(cudaStreamSynchronize(stream_));
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin_, end_));
      const std::vector<double> all = bench::from_all(world_, double(ms) * 1000 / calls);
      best = std::min(best, *std::max_element(all.begin(), all.end()));
    }
    return best;
  }

  /// Times the copy engine: the sender writes into the peer's memory.
  double copy_engine(Way way, uint64_t bytes) {
    return time(way, bytes, [&] {
      if (way == Way::one && receives_) return;
      check(cudaMemcpyAsync(peers_.at(1 - world_.rank()), in_, bytes, cudaMemcpyDeviceToDevice, stream_));
    });
  }

  double nccl(Way way, uint64_t bytes) {
    if (!nccl_) return 0;
    return time(way, bytes, [&] {
      const int peer = 1 - world_.rank();
      std::vector<SendTo> sends;
      std::vector<RecvFrom> recvs;
      if (way == Way::both || !receives_) sends.push_back({in_, bytes, peer});
      if (way == Way::both || receives_) recvs.push_back({out_, bytes, peer});
      nccl_->exchange(sends, recvs, stream_);
    });
  }

  double tiles(Way way, uint64_t bytes, Transport& transport, uint32_t blocks, const Form& form) {
    if (form.port) return tiles_by<CopyProduce, Port>(way, leg(bytes), transport, blocks, form);
    return form.bulk ? tiles_by<bench_tiles::BulkCopyProduce<uint32_t>, Direct>(way, leg(bytes), transport,
                                                                                blocks, form)
                     : tiles_by<CopyProduce, Direct>(way, leg(bytes), transport, blocks, form);
  }

  double packets(Way way, uint64_t bytes, Transport& transport, uint32_t blocks) {
    const AsPackets kernel{transport.table(), leg(bytes), way == Way::both || !receives_,
                           way == Way::both || receives_};
    return time(way, bytes, [&] { launch(transport, kernel, {blocks, 512}, LaunchStream{stream_}); });
  }

  double through_window(Way way, uint64_t bytes, Transport& transport, uint32_t blocks, bool gets) {
    const bool sends = way == Way::both || !receives_, receives = way == Way::both || receives_;
    const ThroughWindow kernel{window_.view(), leg(bytes), gets ? sends : receives, gets ? receives : sends,
                               gets};
    const auto in_window = reinterpret_cast<uint32_t*>(window_.local());
    const auto call = [&] { launch(transport, kernel, {blocks, 512}, LaunchStream{stream_}); };
    return time(way, bytes, call, gets ? Ends{in_window, out_} : Ends{in_, in_window});
  }

  const std::string& why_no_nccl() const { return why_no_nccl_; }

 private:
  Leg leg(uint64_t bytes) const {
    Leg leg;
    leg.in = in_;
    leg.out = out_;
    leg.bytes = bytes;
    leg.elem = 4;
    return leg;
  }

  template <class Produce, class Fabric>
  double tiles_by(Way way, const Leg& leg, Transport& transport, uint32_t blocks, const Form& form) {
    const EndpointTable table = transport.table();
    if (way == Way::both)
      return kernel(way, leg.bytes, BothWays<Produce, Fabric>{table, leg}, transport, blocks, form);
    return kernel(way, leg.bytes, OneWay<Produce, Fabric>{table, leg, !receives_}, transport, blocks, form);
  }

  template <class Kernel>
  double kernel(Way way, uint64_t bytes, const Kernel& kernel, Transport& transport, uint32_t blocks,
                const Form& form) {
    const LaunchConfig config{blocks, form.threads};
    return time(way, bytes, [&] {
      if (form.parts == 1) {
        launch(transport, kernel, config, LaunchStream{stream_});
      } else {
        launch(transport, InParts<Kernel>{kernel, form.parts}, config, LaunchStream{stream_});
      }
    });
  }

  World& world_;
  cuda::Imports imports_;
  cuda::PeerMemory peers_;
  std::unique_ptr<tools::Nccl> nccl_;
  std::string why_no_nccl_;
  const bool receives_;
  OneSidedWindow window_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  uint32_t *in_ = nullptr, *out_ = nullptr, *wrong_ = nullptr;
};

struct Options {
  std::string sizes = "1K:1G:4", blocks = "1:64", threads = "512", parts = "1", slots;
  bool bulk = false, port = false;
};

std::vector<Form> forms_of(const Options& options, uint64_t bytes) {
  std::vector<Form> forms;
  // Long messages use long tiles, which need fewer signals.
  const std::string slots = !options.slots.empty() ? options.slots
                            : bytes < 16 << 20     ? "128K"
                            : bytes < 64 << 20     ? "512K"
                                                   : "1M";
  for (const uint64_t slot : tools::parse_sizes(slots)) {
    for (const uint64_t threads : tools::parse_sizes(options.threads)) {
      for (const uint64_t parts : tools::parse_sizes(options.parts)) {
        for (const RingAt at : {RingAt::receiver, RingAt::sender})
          forms.push_back({uint32_t(threads), uint32_t(parts), slot, false, false, at});
      }
      if (options.bulk) forms.push_back({uint32_t(threads), 1, slot, true});
      // Each slot is an order to the proxy, which costs microseconds.
      const uint64_t order = !options.slots.empty() ? slot : bytes < 64 << 20 ? 2 << 20 : 4 << 20;
      if (options.port) forms.push_back({uint32_t(threads), 1, order, false, true});
    }
  }
  return forms;
}

/// Times all blocks and forms of one size and way. Returns false if they miss a goal.
bool time_size(World& world, Bench& bench, const Options& options, Way way, uint64_t bytes) {
  const double engine = bench.copy_engine(way, bytes), nccl = bench.nccl(way, bytes);
  double best = 1e30, best_of_32 = 1e30;
  const auto note = [&](const char* as, uint32_t blocks, const Form& form, double us) {
    best = std::min(best, us);
    if (blocks <= 32) best_of_32 = std::min(best_of_32, us);
    if (world.rank() != 0) return;
    std::printf("%-5s %-7s %6s %6u %7u %5u %6s %10.2f %9.1f %11.3f %8.3f\n", way == Way::one ? "one" : "both",
                as, tools::format_bytes(bytes).c_str(), blocks, form.threads, form.parts,
                form.slot != 0 ? tools::format_bytes(form.slot).c_str() : "-", us, double(bytes) / us / 1000,
                engine / us, nccl > 0 ? nccl / us : 0.0);
  };
  for (const uint64_t blocks : tools::parse_sizes(options.blocks)) {
    for (const Form& form : forms_of(options, bytes)) {
      if (way == Way::both && blocks * form.parts < 2) continue;
      RendezvousOptions rings;
      rings.max_channels = uint32_t(blocks) * form.parts;
      rings.depth = 4;
      rings.per_peer_bytes = form.slot * rings.depth * rings.max_channels;
      rings.space = Space::device;
      rings.ring_at = form.ring_at;
      const auto transport =
          form.port ? port_rendezvous(world, rings, ProxyKind::copy_engine) : direct_rendezvous(world, rings);
      try {
        const double us = bench.tiles(way, bytes, *transport, uint32_t(blocks), form);
        note(form.name(), uint32_t(blocks), form, us);
      } catch (const UsageError& error) {  // thrown on both ranks, before anything runs
        if (world.rank() == 0) std::printf("# %u threads: %s\n", form.threads, error.what());
      }
    }
    if (bytes > most_as_packets && blocks <= most_blocks_of_windows) {
      const auto transport = direct_rendezvous(
          world, {.per_peer_bytes = 64, .max_channels = 1, .depth = 2, .space = Space::device});
      note("put", uint32_t(blocks), {},
           bench.through_window(way, bytes, *transport, uint32_t(blocks), false));
      note("get", uint32_t(blocks), {}, bench.through_window(way, bytes, *transport, uint32_t(blocks), true));
    }
    if (bytes > most_as_packets || (way == Way::both && blocks < 2)) continue;
    RendezvousOptions packets;
    packets.max_channels = uint32_t(blocks);
    packets.per_peer_bytes = 32 * blocks;
    packets.packet_bytes = bytes / blocks + 64;
    packets.space = Space::device;
    const auto transport = direct_rendezvous(world, packets);
    note("packets", uint32_t(blocks), {}, bench.packets(way, bytes, *transport, uint32_t(blocks)));
  }
  bool met = true;
  if (way == Way::one && bytes == 256 << 20) met &= engine / best_of_32 >= 0.92;
  if (bytes >= 1 << 20 && nccl > 0) met &= nccl / best >= 1;
  if (way == Way::one && bytes == 1024) met &= best < 4;
  return met;
}

int run_rank(int rank, const std::string& address, const Options& options) {
  check(cudaSetDevice(rank));
  World world = World::join(address, rank, 2);
  const std::vector<uint64_t> sizes = tools::parse_sizes(options.sizes);
  Bench bench(world, *std::max_element(sizes.begin(), sizes.end()));
  if (rank == 0 && !bench.why_no_nccl().empty())
    std::printf("# without NCCL: %s\n", bench.why_no_nccl().c_str());
  if (rank == 0)
    std::printf("%-5s %-7s %6s %6s %7s %5s %6s %10s %9s %11s %8s\n", "way", "as", "bytes", "blocks",
                "threads", "parts", "slot", "us", "GB/s", "of engine", "of NCCL");
  bool met = true;
  for (const Way way : {Way::one, Way::both}) {
    for (const uint64_t bytes : sizes) met &= time_size(world, bench, options, way, bytes);
  }
  return met ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Times the device library's sends and receives between two GPUs, beside the copy engine and NCCL.");
  app.add_option("--sizes", options.sizes, "As for chorale run; default " + options.sizes);
  app.add_option("--blocks", options.blocks,
                 "Numbers of blocks, in the same notation; default " + options.blocks);
  app.add_option("--threads", options.threads, "Threads per block; default " + options.threads);
  app.add_option(
      "--parts", options.parts,
      "Numbers of groups of warps into which a block is cut, each with its own channel; default 1");
  app.add_flag("--bulk", options.bulk, "Also send by the copy units of the SMs (TMA)");
  app.add_flag("--port", options.port, "Also send by proxies, which have the copy engine move each slot");
  app.add_option(
      "--slots", options.slots,
      "Bytes of a slot; default 128K, from 16M on 512K, from 64M on 1M; by proxies 2M, from 64M on 4M");
  CLI11_PARSE(app, argc, argv);
  tools::quieten_nccl();
  return bench::run_in_processes(2, "bench_tiles", [&](int rank, const std::string& address) {
    return run_rank(rank, address, options);
  });
}
