/// \file
/// Tests every operation alone, in all packet forms, on threads and in fifty orders.

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "tests/cpu/harness.hpp"

namespace chorale::test {
namespace {

constexpr uint64_t chunks = 8;

Operand in(uint64_t index, uint64_t size = 1) { return {index, size, uint32_t(BufferKind::input)}; }
Operand out(uint64_t index, uint64_t size = 1) { return {index, size, uint32_t(BufferKind::output)}; }
Operand scratch(uint64_t index, uint64_t size = 1) { return {index, size, uint32_t(BufferKind::scratch)}; }
/// Names chunks of the next rank: ref is 0 for input, 1 for output, 2 for scratch. Switch channels use the
/// same numbers.
Operand there(BufferKind kind, uint64_t index, uint64_t size = 1) { return {index, size, uint32_t(kind)}; }

constexpr BufferKind I = BufferKind::input, O = BufferKind::output, S = BufferKind::scratch;

/// Holds a plan of `ranks` ranks and `blocks` blocks. Every rank has one memory and one port channel to the
/// next rank and to the previous one (channels 0 and 1), and a switch channel for each buffer.
struct Ring {
  Plan plan;

  explicit Ring(uint32_t ranks = 3, uint32_t blocks = 1) {
    plan.name = testing::UnitTest::GetInstance()->current_test_info()->name();
    plan.collective = "test";
    std::vector<uint32_t> all(ranks);
    std::iota(all.begin(), all.end(), 0u);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      Gpu gpu;
      gpu.id = rank;
      for (uint64_t& count : gpu.chunks) count = chunks;
      const uint32_t next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
      // With two ranks the next rank is also the previous one, and the k-th channels of both belong together.
      const bool swapped = ranks == 2 && rank == 1;
      const std::vector<uint32_t> peers = {next, previous};
      for (const ChannelType type : {ChannelType::memory, ChannelType::port}) {
        gpu.channels.push_back({.type = type, .connected_to = peers, .rank_groups = {}});
      }
      for (const BufferKind kind : {I, O, S}) {
        gpu.channels.push_back(
            {.type = ChannelType::switched, .connected_to = {}, .buffer = kind, .rank_groups = {all}});
        gpu.remote_buffers.push_back({next, kind, {ChannelType::memory, ChannelType::port}});
      }
      const std::vector<uint32_t> ids = swapped ? std::vector<uint32_t>{1, 0} : std::vector<uint32_t>{0, 1};
      for (uint32_t id = 0; id < blocks; ++id) {
        ThreadBlock block;
        block.id = id;
        block.channels = {
            {ChannelType::memory, ids}, {ChannelType::port, ids}, {ChannelType::switched, {0, 1, 2}}};
        block.remote_buffers = {{ChannelType::memory, {0, 1, 2}}, {ChannelType::port, {0, 1, 2}}};
        gpu.threadblocks.push_back(block);
      }
      plan.gpus.push_back(gpu);
    }
  }

  using List = std::vector<Operand>;
  using Ids = std::vector<uint32_t>;

  /// Adds the same operation to a block of every rank.
  Ring& op(Opcode code, const List& src = {}, const List& dst = {}, ChannelType via = ChannelType::none,
           const Ids& ids = {}, uint32_t block = 0, const std::function<void(Op&)>& change = {}) {
    for (Gpu& gpu : plan.gpus) {
      Op& one = append(gpu.threadblocks[block], code, src, dst, ids);
      one.via = via;
      if (change) change(one);
    }
    return *this;
  }
  Ring& nop(uint32_t block = 0) { return op(Opcode::nop, {}, {}, ChannelType::none, {}, block); }
  /// Signals both neighbours and waits for both.
  Ring& sync(ChannelType via = ChannelType::memory, uint32_t block = 0) {
    op(Opcode::signal, {}, {}, via, {0, 1}, block);
    return op(Opcode::wait, {}, {}, via, {0, 1}, block);
  }
};

/// Computes the expected output of launch `launch`: expected(rank, chunk, element), or none.
using Expected =
    std::function<std::optional<int64_t>(uint32_t rank, uint64_t chunk, uint64_t at, int launch)>;

int64_t value(uint32_t rank, uint64_t chunk, uint64_t at, int launch) {
  return int64_t(rank * 100000 + chunk * 10000 + at * 10 + uint64_t(launch));
}

void expect_runs(const Plan& plan, const Expected& expected) {
  const auto run = [&](uint64_t elements, PacketForm form, LocalOptions options) {
    std::vector<std::string> wrong(plan.ranks());
    run_local(
        int(plan.ranks()),
        [&](World& world) {
          const uint32_t rank = uint32_t(world.rank());
          Executor executor(world);
          std::vector<int32_t> input(chunks * elements), output(chunks * elements + 4);
          for (int launch = 0; launch < 5; ++launch) {
            for (uint64_t at = 0; at < input.size(); ++at) {
              input[at] = int32_t(value(rank, at / elements, at % elements, launch));
            }
            std::fill(output.begin(), output.end(), -1);
            executor.execute(plan, {.in = input.data(),
                                    .out = output.data(),
                                    .bytes = input.size() * 4,
                                    .dtype = DType::i32,
                                    .packet = form});
            for (uint64_t at = 0; at < output.size(); ++at) {
              const auto wanted = at < input.size() ? expected(rank, at / elements, at % elements, launch)
                                                    : std::optional<int64_t>(-1);
              if (wanted && output[at] != *wanted && wrong[rank].empty()) {
                wrong[rank] = "rank " + std::to_string(rank) + " launch " + std::to_string(launch) +
                              " element " + std::to_string(at) + ": " + std::to_string(output[at]) +
                              ", not " + std::to_string(*wanted);
              }
            }
            // No rank may write what another one still reads, because tests of single operations have no
            // epilogue.
            world.barrier();
          }
        },
        options);
    for (const std::string& one : wrong) {
      EXPECT_EQ(one, "") << elements << " elements, form " << int(form) << ", seed "
                         << (options.seed ? std::to_string(*options.seed) : "none");
    }
  };
  for (const PacketForm form : {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128}) {
    for (const uint64_t elements : {1, 4, 5, 1000}) run(elements, form, {});
    for (uint64_t seed = 0; seed < 25; ++seed) run(seed % 2 ? 7 : 40, form, {.seed = seed});
  }
}

uint32_t next_of(const Plan& plan, uint32_t rank) { return (rank + 1) % plan.ranks(); }
uint32_t previous_of(const Plan& plan, uint32_t rank) { return (rank + plan.ranks() - 1) % plan.ranks(); }

TEST(Ops, copy_and_nop) {
  Ring ring;
  ring.op(Opcode::copy, {in(0, 3)}, {scratch(2, 3)}).nop().op(Opcode::copy, {scratch(2, 3)}, {out(4, 3)});
  ring.op(Opcode::require);
  expect_runs(ring.plan,
              [](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                return chunk >= 4 && chunk < 7 ? value(rank, chunk - 4, at, launch) : -1;
              });
}

TEST(Ops, copy_packets_and_unpack_packets) {
  Ring ring(1);
  ring.op(Opcode::copy_packets, {in(1, 2)}, {scratch(5, 2)});
  ring.op(Opcode::unpack_packets, {scratch(5, 2)}, {out(0, 2)});
  expect_runs(ring.plan,
              [](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                return chunk < 2 ? value(rank, chunk + 1, at, launch) : -1;
              });
}

TEST(Ops, put_of_several_pairs) {
  for (const uint32_t ranks : {2u, 3u}) {
    Ring ring(ranks);
    ring.sync();
    ring.op(Opcode::put, {in(0, 2), in(5)}, {there(O, 3, 2), there(O, 0)}, ChannelType::memory);
    ring.sync();
    expect_runs(ring.plan,
                [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                  const uint32_t from = previous_of(ring.plan, rank);
                  if (chunk == 3 || chunk == 4) return value(from, chunk - 3, at, launch);
                  return chunk == 0 ? value(from, 5, at, launch) : -1;
                });
  }
}

TEST(Ops, get) {
  Ring ring;
  ring.sync();
  ring.op(Opcode::get, {there(I, 1, 2), there(I, 7)}, {out(6, 2), out(0)}, ChannelType::memory, {0});
  ring.sync();
  expect_runs(ring.plan,
              [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                const uint32_t from = next_of(ring.plan, rank);
                if (chunk >= 6) return value(from, chunk - 5, at, launch);
                return chunk == 0 ? value(from, 7, at, launch) : -1;
              });
}

TEST(Ops, relaxed_signal_and_wait_then_the_ordered_ones) {
  Ring ring;
  ring.op(Opcode::relaxed_signal, {}, {}, ChannelType::memory, {0, 1});
  ring.op(Opcode::relaxed_wait, {}, {}, ChannelType::memory, {0, 1});
  ring.op(Opcode::put, {in(0)}, {there(S, 0)}, ChannelType::memory).sync();
  ring.op(Opcode::copy, {scratch(0)}, {out(0)});
  expect_runs(ring.plan,
              [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                return chunk == 0 ? value(previous_of(ring.plan, rank), 0, at, launch) : -1;
              });
}

TEST(Ops, put_packets_and_read_put_packets) {
  for (const ChannelType via : {ChannelType::memory, ChannelType::port}) {
    Ring ring;
    const Ring::Ids ids = via == ChannelType::port ? Ring::Ids{0} : Ring::Ids{};
    ring.op(Opcode::put_packets, {in(3, 2)}, {there(S, 0, 2)}, via, ids);
    ring.op(Opcode::read_put_packets, {scratch(0, 2)}, {there(S, 4, 2)}, via, ids);
    ring.op(Opcode::unpack_packets, {scratch(4, 2)}, {out(0, 2)});
    expect_runs(ring.plan,
                [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                  const uint32_t from = previous_of(ring.plan, previous_of(ring.plan, rank));
                  return chunk < 2 ? value(from, chunk + 3, at, launch) : -1;
                });
  }
}

TEST(Ops, port_put_signal_and_flush) {
  Ring ring;
  ring.sync(ChannelType::port);
  ring.op(Opcode::put, {in(0, 2)}, {there(O, 1, 2)}, ChannelType::port, {0});
  ring.op(Opcode::flush, {}, {}, ChannelType::port, {0});
  ring.sync(ChannelType::port);
  expect_runs(
      ring.plan, [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
        return chunk == 1 || chunk == 2 ? value(previous_of(ring.plan, rank), chunk - 1, at, launch) : -1;
      });
}

TEST(Ops, put_with_signal_carries_its_data) {
  for (const Opcode code : {Opcode::put_with_signal, Opcode::put_with_signal_and_flush}) {
    Ring ring;
    ring.op(code, {in(4)}, {there(S, 2)}, ChannelType::port, {0});
    ring.op(Opcode::wait, {}, {}, ChannelType::port, {1});
    ring.op(Opcode::copy, {scratch(2)}, {out(2)}).sync();
    expect_runs(ring.plan,
                [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                  return chunk == 2 ? value(previous_of(ring.plan, rank), 4, at, launch) : -1;
                });
  }
}

TEST(Ops, more_triggers_than_the_ring_holds) {
  Ring ring(2);
  for (int times = 0; times < 1500; ++times)
    ring.op(Opcode::put, {in(0)}, {there(S, 0)}, ChannelType::port, {0});
  ring.op(Opcode::put_with_signal, {in(1)}, {there(S, 1)}, ChannelType::port, {0});
  ring.op(Opcode::wait, {}, {}, ChannelType::port, {1}).op(Opcode::copy, {scratch(0, 2)}, {out(0, 2)}).sync();
  run_local(2, [&](World& world) {
    Executor executor(world);
    std::vector<int32_t> input(64), output(64);
    std::iota(input.begin(), input.end(), world.rank() * 100);
    for (int launch = 0; launch < 5; ++launch) {
      executor.execute(ring.plan,
                       {.in = input.data(), .out = output.data(), .bytes = 256, .dtype = DType::i32});
      EXPECT_EQ(output[9], (1 - world.rank()) * 100 + 9);
    }
  });
}

TEST(Ops, reductions_of_plain_chunks) {
  Ring ring;
  ring.op(Opcode::reduce, {in(0), in(1), in(2)}, {out(0)});
  ring.sync();
  ring.op(Opcode::reduce_send, {in(0), in(3)}, {out(1), there(O, 2)}, ChannelType::memory);
  ring.op(Opcode::read_reduce, {in(4), there(I, 4), there(I, 5)}, {out(3)}, ChannelType::memory);
  ring.op(Opcode::read_reduce_send, {in(6), there(I, 6)}, {out(4), there(O, 5)}, ChannelType::memory);
  ring.sync();
  expect_runs(ring.plan,
              [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                const uint32_t after = next_of(ring.plan, rank), before = previous_of(ring.plan, rank);
                const auto of = [&](uint32_t from, uint64_t which) { return value(from, which, at, launch); };
                switch (chunk) {
                  case 0:
                    return of(rank, 0) + of(rank, 1) + of(rank, 2);
                  case 1:
                    return of(rank, 0) + of(rank, 3);
                  case 2:
                    return of(before, 0) + of(before, 3);
                  case 3:
                    return of(rank, 4) + of(after, 4) + of(after, 5);
                  case 4:
                    return of(rank, 6) + of(after, 6);
                  case 5:
                    return of(before, 6) + of(rank, 6);
                  default:
                    return -1;
                }
              });
}

TEST(Ops, reductions_of_packets) {
  Ring ring;
  ring.op(Opcode::put_packets, {in(0, 4)}, {there(S, 0, 4)}, ChannelType::memory);
  ring.op(Opcode::reduce_packets, {in(7), scratch(0), scratch(1)}, {out(0)});
  ring.op(Opcode::reduce_send_packets, {in(7), scratch(1)}, {out(1), there(S, 4)}, ChannelType::memory);
  ring.op(Opcode::reduce_copy_packets, {in(7), scratch(2)}, {out(2), scratch(5)});
  ring.op(Opcode::reduce_copy_send_packets, {in(7), scratch(3)}, {out(3), scratch(6), there(S, 7)},
          ChannelType::memory);
  for (const uint64_t chunk : {4, 5, 6, 7}) ring.op(Opcode::unpack_packets, {scratch(chunk)}, {out(chunk)});
  expect_runs(ring.plan,
              [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                const uint32_t before = previous_of(ring.plan, rank), second = previous_of(ring.plan, before);
                const auto of = [&](uint32_t from, uint64_t which) { return value(from, which, at, launch); };
                switch (chunk) {
                  case 0:
                    return of(rank, 7) + of(before, 0) + of(before, 1);
                  case 1:
                    return of(rank, 7) + of(before, 1);
                  case 2:
                  case 5:
                    return of(rank, 7) + of(before, 2);
                  case 3:
                  case 6:
                    return of(rank, 7) + of(before, 3);
                  case 4:
                    return of(before, 7) + of(second, 1);
                  default:
                    return of(before, 7) + of(second, 3);
                }
              });
}

TEST(Ops, combined_packets) {
  Ring ring;
  ring.op(Opcode::put_packets, {in(0, 4)}, {there(S, 0, 4)}, ChannelType::memory);
  ring.op(Opcode::copy_packets, {in(4, 2)}, {scratch(4, 2)});
  ring.op(Opcode::combine_packets, {scratch(4), scratch(0), scratch(3)}, {out(0)});
  ring.op(Opcode::combine_packets, {scratch(1, 2), scratch(4, 2)}, {out(1, 2)});
  ring.op(Opcode::combine_packets, {scratch(2)}, {out(3)});
  expect_runs(ring.plan,
              [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                const uint32_t before = previous_of(ring.plan, rank);
                const auto of = [&](uint32_t from, uint64_t which) { return value(from, which, at, launch); };
                switch (chunk) {
                  case 0:
                    return of(rank, 4) + of(before, 0) + of(before, 3);
                  case 1:
                  case 2:
                    return of(before, chunk) + of(rank, chunk + 3);
                  case 3:
                    return of(before, 2);
                  default:
                    return -1;
                }
              });
}

TEST(Ops, switch_operations) {
  // Each rank uses only chunk `rank` of every region.
  Ring ring(3);
  ring.sync();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ThreadBlock& block = ring.plan.gpus[rank].threadblocks[0];
    const auto add = [&](Opcode code, const Operand& src, const Operand& dst) {
      append(block, code, {&src, 1}, {&dst, 1}).via = ChannelType::switched;
    };
    add(Opcode::switch_reduce, there(I, rank), out(rank));
    add(Opcode::switch_broadcast, in(7), there(O, 3 + rank));
    append(block, Opcode::copy_packets, std::vector{in(rank)}, std::vector{scratch(4 + rank)});
    add(Opcode::switch_broadcast_packets, scratch(4 + rank), there(S, rank));
  }
  ring.op(Opcode::unpack_packets, {scratch(1)}, {out(6)}).sync();
  for (uint32_t rank = 0; rank < 1; ++rank) {
    ThreadBlock& block = ring.plan.gpus[rank].threadblocks[0];
    append(block, Opcode::switch_reduce_broadcast, std::vector{there(I, 5)}, std::vector{there(O, 7)}).via =
        ChannelType::switched;
  }
  ring.sync();
  expect_runs(ring.plan,
              [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                const auto of = [&](uint32_t from, uint64_t which) { return value(from, which, at, launch); };
                if (chunk < 3) return chunk == rank ? of(0, chunk) + of(1, chunk) + of(2, chunk) : -1;
                if (chunk < 6) return of(uint32_t(chunk - 3), 7);
                if (chunk == 6) return of(1, 1);
                return of(0, 5) + of(1, 5) + of(2, 5);
              });
}

TEST(Ops, thread_block_groups_share_a_chunk) {
  Ring ring(2, 4);
  for (uint32_t block = 0; block < 4; ++block) {
    const auto share = [&](Op& op) {
      op.group_index = block;
      op.group_size = 4;
    };
    ring.op(Opcode::put_packets, {in(0, 2)}, {there(S, 0, 2)}, ChannelType::memory, {}, block, share);
    ring.op(Opcode::reduce_packets, {in(2, 2), scratch(0, 2)}, {out(0, 2)}, ChannelType::none, {}, block,
            share);
    ring.op(Opcode::copy, {in(5)}, {out(5)}, ChannelType::none, {}, block, share);
  }
  expect_runs(ring.plan,
              [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                if (chunk < 2) return value(rank, chunk + 2, at, launch) + value(1 - rank, chunk, at, launch);
                return chunk == 5 ? value(rank, 5, at, launch) : -1;
              });
}

TEST(Ops, barriers_and_semaphores_between_blocks) {
  Ring ring(2, 3);
  for (Gpu& gpu : ring.plan.gpus) gpu.semaphores = {0, 2};
  const auto three = [](Op& op) { op.participants = 3; };
  ring.op(Opcode::copy, {in(0)}, {scratch(0)}, ChannelType::none, {}, 0);
  ring.op(Opcode::copy, {in(1)}, {scratch(1)}, ChannelType::none, {}, 1);
  for (uint32_t block = 0; block < 3; ++block) {
    for (int times = 0; times < 3; ++times) {
      ring.op(Opcode::barrier, {}, {}, ChannelType::none, {7}, block, three);
    }
  }
  ring.op(Opcode::copy, {scratch(1)}, {out(0)}, ChannelType::none, {}, 0);
  ring.op(Opcode::reduce, {scratch(0), scratch(1)}, {scratch(2)}, ChannelType::none, {}, 2);
  ring.op(Opcode::sem_release, {}, {}, ChannelType::none, {0}, 2);
  ring.op(Opcode::sem_release, {}, {}, ChannelType::none, {0}, 2);
  ring.op(Opcode::sem_acquire, {}, {}, ChannelType::none, {0, 1}, 1);
  ring.op(Opcode::copy, {scratch(2)}, {out(1)}, ChannelType::none, {}, 1);
  ring.op(Opcode::sem_acquire, {}, {}, ChannelType::none, {0, 1}, 0);
  ring.op(Opcode::copy, {scratch(2)}, {out(2)}, ChannelType::none, {}, 0);
  ring.op(Opcode::sem_release, {}, {}, ChannelType::none, {1, 1}, 0);
  for (uint32_t block = 0; block < 3; ++block)
    ring.op(Opcode::barrier, {}, {}, ChannelType::none, {7}, block, three);
  expect_runs(ring.plan,
              [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                if (chunk == 0) return value(rank, 1, at, launch);
                return chunk < 3 ? value(rank, 0, at, launch) + value(rank, 1, at, launch) : -1;
              });
}

TEST(Ops, pipelines_advance_every_operand) {
  for (const uint64_t unit : {16u, 48u, 1024u, 1u << 20}) {
    Ring ring(2);
    const auto loop = [&](Op& op) {
      op.unit_bytes = unit;
      op.chunks = 2;
      op.body = 5;
    };
    ring.op(Opcode::pipeline, {}, {}, ChannelType::none, {}, 0, loop);
    ring.op(Opcode::put_packets, {in(0, 2)}, {there(S, 0, 2)}, ChannelType::memory);
    ring.op(Opcode::reduce_packets, {in(2), scratch(0)},
            {out(0)});  // one chunk, which is ready earlier than the others
    ring.op(Opcode::signal, {}, {}, ChannelType::memory, {0});
    ring.op(Opcode::wait, {}, {}, ChannelType::memory, {1});
    ring.op(Opcode::unpack_packets, {scratch(0, 2)}, {out(4, 2)});
    ring.op(Opcode::copy, {in(3)}, {out(7)});
    expect_runs(ring.plan,
                [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                  if (chunk == 0) return value(rank, 2, at, launch) + value(1 - rank, 0, at, launch);
                  if (chunk == 4 || chunk == 5) return value(1 - rank, chunk - 4, at, launch);
                  return chunk == 7 ? value(rank, 3, at, launch) : -1;
                });
  }
}

TEST(Ops, two_banks_of_plain_scratch) {
  Ring ring;
  ring.plan.use_double_scratch_buffer = true;
  ring.op(Opcode::put, {in(0)}, {there(S, 3)}, ChannelType::memory).sync();
  ring.op(Opcode::copy, {scratch(3)}, {out(0)});
  expect_runs(ring.plan,
              [&](uint32_t rank, uint64_t chunk, uint64_t at, int launch) -> std::optional<int64_t> {
                return chunk == 0 ? value(previous_of(ring.plan, rank), 0, at, launch) : -1;
              });
}

}  // namespace
}  // namespace chorale::test
