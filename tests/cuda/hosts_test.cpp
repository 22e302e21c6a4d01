// Tests plans over several hosts on GPUs, with ranks of one machine that count as several hosts: hosts_test
// [--share-gpus]. Ranks are processes with a GPU each. If they share GPUs, they are threads of one process.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "executor/cuda/device/error.hpp"
#include "tests/cuda/ranks.hpp"
#include "tests/cuda/share_gpus.hpp"
#include "tests/hosts/harness.hpp"

namespace chorale::test {
namespace {

using cuda::check;

bool threads_for(const HostsOfRanks& hosts) { return share_gpus && gpus_are_shared(int(hosts.size())); }

/// Runs `f` as on_hosts() does, with a GPU for each rank, and expects these exit statuses.
template <class F>
void expect_well(const HostsOfRanks& hosts, const F& f,
                 std::chrono::nanoseconds timeout = std::chrono::seconds(30),
                 std::vector<int> expected = {}) {
  gpus();  // before the fork
  const std::string address = free_address();
  const int ranks = int(hosts.size());
  const auto of_rank = [&](int rank) {
    JoinOptions options;
    options.host = std::to_string(hosts[size_t(rank)]);
    options.timeout = timeout;
    World world = World::join(address, rank, ranks, options);
    check(cudaSetDevice(rank % gpus()), "cudaSetDevice");
    return f(world);
  };
  if (expected.empty()) expected.resize(size_t(ranks));
  if (!threads_for(hosts)) {
    EXPECT_EQ(forked(ranks, of_rank), expected);
    return;
  }
  const std::vector<int> codes = forked(1, [&](int) {
    let_threads_share_gpus();
    std::vector<int> all(size_t(ranks), 99);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          all[size_t(rank)] = of_rank(rank);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        }
      });
    }
    for (std::thread& one : threads) one.join();
    return all == expected ? 0 : 1;
  });
  EXPECT_EQ(codes, std::vector<int>{0});
}

Config on_cuda(std::chrono::nanoseconds timeout = std::chrono::seconds(30)) {
  Config config;
  config.backend = "cuda";
  config.timeout = timeout;
  return config;
}

/// Holds a rank's buffers for a plan and a size, and the expected contents.
class Data {
 public:
  Data(World& world, const Plan& plan, uint64_t bytes, PacketForm packet, bool in_place = false)
      : world_(world), plan_(plan), sizes_(message_sizes(plan, bytes, DType::i32)) {
    const uint64_t room = std::max(sizes_.input, sizes_.output) + guard;
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    check(cudaMalloc(&memory_, 2 * up(room)), "cudaMalloc");
    char* const first = static_cast<char*>(memory_);
    in_ = first;
    out_ = in_place ? first : first + up(room);
    arguments_ = {.in = in_, .out = out_, .bytes = bytes, .dtype = DType::i32, .packet = packet};
  }
  Data(const Data&) = delete;
  ~Data() {
    cudaStreamDestroy(stream_);
    cudaFree(memory_);
  }

  const Arguments& arguments() const { return arguments_; }
  cudaStream_t stream() const { return stream_; }

  /// Copies inputs and a fresh output, on the stream.
  void load(int launch) {
    const Ints input = input_of(rank(), sizes_.input, launch);
    if (in_ != out_) check(cudaMemsetAsync(out_, 0x5a, sizes_.output, stream_), "output");
    check(
        cudaMemsetAsync(out_ + std::max(sizes_.output, in_ == out_ ? sizes_.input : 0), 0x77, guard, stream_),
        "guard");
    check(cudaMemcpyAsync(in_, input.data(), sizes_.input, cudaMemcpyHostToDevice, stream_), "input");
    check(cudaStreamSynchronize(stream_), "input");
  }

  /// Returns "", or the error in the output of the launch.
  std::string wrong(int launch) const {
    const Ints expected = output_of(plan_, rank(), sizes_, launch);
    Ints seen(expected.size());
    check(cudaMemcpyAsync(seen.data(), out_, sizes_.output, cudaMemcpyDeviceToHost, stream_), "output");
    unsigned char behind[guard];
    check(cudaMemcpyAsync(behind, out_ + std::max(sizes_.output, in_ == out_ ? sizes_.input : 0), guard,
                          cudaMemcpyDeviceToHost, stream_),
          "guard");
    check(cudaStreamSynchronize(stream_), "output");
    for (size_t at = 0; at < seen.size(); ++at) {
      if (seen[at] == expected[at]) continue;
      return plan_.name + ", rank " + std::to_string(rank()) + ", " + std::to_string(arguments_.bytes) +
             " bytes, launch " + std::to_string(launch) + ", element " + std::to_string(at) + ": " +
             std::to_string(seen[at]) + ", not " + std::to_string(expected[at]);
    }
    for (const unsigned char one : behind) {
      if (one != 0x77) return plan_.name + ": written behind the output";
    }
    return "";
  }

 private:
  static constexpr size_t guard = 64;
  static uint64_t up(uint64_t bytes) { return (bytes + 255) / 256 * 256; }
  uint32_t rank() const { return uint32_t(world_.rank()); }

  World& world_;
  const Plan& plan_;
  const MessageSizes sizes_;
  void* memory_ = nullptr;
  char *in_ = nullptr, *out_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Arguments arguments_;
};

/// Launches with new data each time. Returns "" or the error.
std::string run_on_gpu(World& world, Executor& executor, const Plan& plan, uint64_t bytes, PacketForm packet,
                       bool in_place = false) {
  Data data(world, plan, bytes, packet, in_place);
  executor.prepare(plan, data.arguments());
  std::string wrong;
  for (int launch = 0; launch < 3; ++launch) {
    data.load(launch);
    // If ranks share a GPU, copies of other ranks may wait for a kernel that waits for them.
    world.barrier();
    executor.execute(plan, data.arguments(), data.stream());
    executor.synchronize(data.stream());
    if (wrong.empty()) wrong = data.wrong(launch);
    world.barrier();
  }
  return wrong;
}

/// Gives sizes of one piece and of several. No part is a whole unit.
const std::vector<uint64_t> elements = {1, 1003, 70001, 300001};

void expect_right(const Plan& plan, const HostsOfRanks& hosts, const std::vector<PacketForm>& forms,
                  const std::vector<uint64_t>& sizes = elements, bool in_place = false) {
  SCOPED_TRACE(plan.name + " on " + std::to_string(hosts.size()) + " ranks");
  expect_well(hosts, [&](World& world) {
    Executor executor(world, on_cuda());
    for (const PacketForm form : forms) {
      for (const uint64_t bytes : some_sizes(plan, sizes)) {
        const std::string wrong = run_on_gpu(world, executor, plan, bytes, form, in_place);
        if (!wrong.empty()) return verdict(wrong);
      }
    }
    return 0;
  });
}

const HostsOfRanks two = {0, 1}, three = {0, 1, 2}, four = {0, 0, 1, 1}, mixed = {0, 1, 0, 1};

class HostsOnGpus : public testing::Test {
 protected:
  void SetUp() override {
    CHORALE_NEEDS_GPUS(2);
    if (const std::string missing = ucx::UcxLink::missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_F(HostsOnGpus, put_signal_wait_and_flush) {
  for (const HostsOfRanks& hosts : {two, four, mixed}) {
    for (const char* const joined : {"0", "1"})
      expect_right(
          make_plan("hosts_put_signal_flush", int(hosts.size()), {{"joined", joined}, {"chunks", "3"}}),
          hosts, {PacketForm::ll16});
  }
}

TEST_F(HostsOnGpus, packets) {
  for (const HostsOfRanks& hosts : {two, mixed})
    expect_right(make_plan("hosts_put_packets", int(hosts.size())), hosts,
                 {PacketForm::ll8, PacketForm::ll16}, {1, 5, 1003, 70001});
}

TEST_F(HostsOnGpus, what_was_flushed_may_be_overwritten) {
  expect_right(make_plan("hosts_reuse_after_flush", 3), three, {PacketForm::ll16}, {1, 777, 70001});
}

TEST_F(HostsOnGpus, messages_over_the_ends_of_parts) {
  expect_right(make_plan("hosts_gather_and_give", 3), three, {PacketForm::ll16}, {1, 5, 1003});
}

/// The message is longer than a sender may have in flight.
TEST_F(HostsOnGpus, large_messages) {
  expect_right(make_plan("hosts_put_signal_flush", 3, {{"chunks", "5"}}), three, {PacketForm::ll16},
               {5000001});
}

/// The plan uses memory channels within a host and port channels between hosts.
TEST_F(HostsOnGpus, two_levels) {
  for (const char* const inplace : {"0", "1"}) {
    expect_right(make_plan("allreduce_two_level", 4, {{"inplace", inplace}}), four, {PacketForm::ll16},
                 elements, *inplace == '1');
  }
}

TEST_F(HostsOnGpus, plans_of_mscclpp) {
  const std::filesystem::path folder = source_dir() / "../shared/mscclpp-plans";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  for (const char* const name :
       {"multi_node-allgather__gpn2", "multi_node-allgather_pkt__gpn2", "multi_node-reducescatter__gpn2",
        "multi_node-allgather_tbg__n4-gpn2-tbg1"}) {
    expect_right(load((folder / (std::string(name) + ".json")).string()), four,
                 {PacketForm::ll8, PacketForm::ll16}, {4, 1028, 9001});
  }
  expect_right(load((folder / "multi_node-send_recv__nn2-gpn1-m0x0-i4.json").string()), two,
               {PacketForm::ll16}, {4, 1028, 9001});
}

/// When proxies copy packets, a line (LL128) may arrive in parts.
TEST_F(HostsOnGpus, lines_do_not_go_between_hosts) {
  const Plan plan = make_plan("hosts_put_packets", 2);
  expect_well(two, [&](World& world) {
    Executor executor(world, on_cuda());
    Data data(world, plan, 4096, PacketForm::ll128);
    try {
      executor.prepare(plan, data.arguments());
    } catch (const UsageError& refused) {
      return std::string(refused.what()).find("which is on another host: set packet = ll16") !=
                     std::string::npos
                 ? 0
                 : verdict(refused.what());
    }
    return verdict("it is not refused");
  });
}

/// Only the plans themselves wait between launches, eagerly and in a graph.
TEST_F(HostsOnGpus, many_launches_with_new_data) {
  constexpr int launches = 50;
  for (const char* const name : {"hosts_put_signal_flush", "hosts_put_packets", "allreduce_two_level"}) {
    const Plan plan = make_plan(name, 4);
    const uint64_t bytes = some_sizes(plan, {9001})[0];
    const MessageSizes sizes = message_sizes(plan, bytes, DType::i32);
    expect_well(four, [&](World& world) {
      Executor executor(world, on_cuda());
      Data data(world, plan, bytes, PacketForm::ll16);
      char *fed = nullptr, *kept = nullptr;
      check(cudaMalloc(reinterpret_cast<void**>(&fed), launches * sizes.input), "inputs");
      check(cudaMalloc(reinterpret_cast<void**>(&kept), launches * sizes.output), "outputs");
      for (int launch = 0; launch < launches; ++launch) {
        const Ints input = input_of(uint32_t(world.rank()), sizes.input, launch);
        check(cudaMemcpy(fed + uint64_t(launch) * sizes.input, input.data(), sizes.input,
                         cudaMemcpyHostToDevice),
              "inputs");
      }
      check(cudaDeviceSynchronize(), "inputs");
      executor.prepare(plan, data.arguments());
      world.barrier();
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t captured = nullptr;
      check(cudaStreamBeginCapture(data.stream(), cudaStreamCaptureModeThreadLocal), "a capture");
      executor.execute(plan, data.arguments(), data.stream());
      check(cudaStreamEndCapture(data.stream(), &graph), "a capture");
      check(cudaGraphInstantiate(&captured, graph, 0), "a graph");
      check(cudaGraphUpload(captured, data.stream()), "a graph");
      check(cudaStreamSynchronize(data.stream()), "a graph");
      world.barrier();
      char* const in = static_cast<char*>(const_cast<void*>(data.arguments().in));
      for (int launch = 0; launch < launches; ++launch) {
        check(cudaMemcpyAsync(in, fed + uint64_t(launch) * sizes.input, sizes.input, cudaMemcpyDeviceToDevice,
                              data.stream()),
              "an input");
        if (launch % 5 == 2) {
          executor.execute(plan, data.arguments(), data.stream());
        } else {
          check(cudaGraphLaunch(captured, data.stream()), "a replay");
        }
        check(cudaMemcpyAsync(kept + uint64_t(launch) * sizes.output, data.arguments().out, sizes.output,
                              cudaMemcpyDeviceToDevice, data.stream()),
              "an output");
      }
      executor.synchronize(data.stream());
      std::string wrong;
      for (int launch = 0; launch < launches && wrong.empty(); ++launch) {
        Ints seen(sizes.output / 4);
        check(cudaMemcpy(seen.data(), kept + uint64_t(launch) * sizes.output, sizes.output,
                         cudaMemcpyDeviceToHost),
              "outputs");
        if (seen != output_of(plan, uint32_t(world.rank()), sizes, launch))
          wrong = plan.name + ": launch " + std::to_string(launch) + " is wrong";
      }
      world.barrier();
      check(cudaGraphExecDestroy(captured), "a graph");
      check(cudaGraphDestroy(graph), "a graph");
      check(cudaFree(fed), "inputs");
      check(cudaFree(kept), "outputs");
      return verdict(wrong);
    });
  }
}

std::string failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const RunError& error) {
    return std::string(name(error.reason)) + ": " + error.what();
  }
  return "nothing";
}

std::string lacking(const std::string& text, const std::string& part) {
  return text.find(part) == std::string::npos ? "'" + part + "' is not in: " + text : "";
}

void await_stop(World& world) {
  for (int look = 0; look < 2000 && failure([&] { world.check(); }) == "nothing"; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST_F(HostsOnGpus, a_rank_never_launches) {
  const Plan plan = make_plan("hosts_put_signal_flush", 2);
  const std::chrono::seconds deadline(3);
  expect_well(
      two,
      [&](World& world) {
        Executor executor(world, on_cuda(deadline));
        for (int round = 0; round < 2; ++round) {
          if (const std::string wrong = run_on_gpu(world, executor, plan, 8192, PacketForm::ll16);
              !wrong.empty())
            return verdict(wrong);
          Data data(world, plan, 8192, PacketForm::ll16);
          executor.prepare(plan, data.arguments());
          world.barrier();
          if (world.rank() == 0) {
            const std::string said = failure([&] {
              executor.execute(plan, data.arguments(), data.stream());
              executor.synchronize(data.stream());
            });
            if (const std::string wrong = lacking(said, "port channel 0 from rank 1"); !wrong.empty())
              return verdict(wrong);
          } else {
            await_stop(world);
          }
          world.reset();
        }
        return verdict(run_on_gpu(world, executor, plan, 8192, PacketForm::ll16));
      },
      deadline);
}

TEST_F(HostsOnGpus, an_abort_and_a_reset) {
  const Plan plan = make_plan("allreduce_two_level", 4), packets = make_plan("hosts_put_packets", 4);
  expect_well(four, [&](World& world) {
    Executor executor(world, on_cuda());
    for (int round = 0; round < 4; ++round) {
      for (const Plan* const of : {&plan, &packets}) {
        const uint64_t bytes = some_sizes(*of, {5001})[0];
        if (const std::string wrong = run_on_gpu(world, executor, *of, bytes, PacketForm::ll16);
            !wrong.empty())
          return verdict("round " + std::to_string(round) + ": " + wrong);
      }
      const Plan& next = round % 2 ? plan : packets;
      Data data(world, next, some_sizes(next, {300001})[0], PacketForm::ll16);
      executor.prepare(next, data.arguments());
      world.barrier();
      // Each rank pauses in turn while the others have sent data that it does not receive.
      if (world.rank() == round % 4) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20 * (round % 2)));
        world.abort("enough");
      } else {
        const std::string said = failure([&] {
          executor.execute(next, data.arguments(), data.stream());
          executor.synchronize(data.stream());
          await_stop(world);
          world.check();
        });
        if (const std::string wrong = lacking(said, "enough"); !wrong.empty()) return verdict(wrong);
      }
      world.reset();
    }
    return 0;
  });
}

TEST_F(HostsOnGpus, a_rank_dies) {
  const Plan plan = make_plan("hosts_put_signal_flush", 2);
  if (threads_for(two)) GTEST_SKIP() << "ranks that share a GPU are threads here, which do not die alone";
  expect_well(two,
              [&](World& world) {
                Executor executor(world, on_cuda());
                if (const std::string wrong = run_on_gpu(world, executor, plan, 8192, PacketForm::ll16);
                    !wrong.empty())
                  return verdict(wrong);
                Data data(world, plan, 8192, PacketForm::ll16);
                executor.prepare(plan, data.arguments());
                world.barrier();
                if (world.rank() == 1) raise(SIGKILL);
                return verdict(lacking(failure([&] {
                                         executor.execute(plan, data.arguments(), data.stream());
                                         executor.synchronize(data.stream());
                                       }),
                                       "peer_lost: rank 1"));
              },
              std::chrono::seconds(30), {0, -SIGKILL});
}

}  // namespace
}  // namespace chorale::test
