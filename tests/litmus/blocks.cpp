// These tests are about threads and blocks of one rank.

#include "litmus.hpp"

namespace chorale::litmus {
namespace {

/// Copies three chunks to scratch, and from there to the output one chunk further. Other threads read them.
Program shifted(bool synchronised) {
  Program program = program_of(1, {{0, 0, 0, 1}, {0, 1, 0, 2}, {0, 2, 0, 0}});
  const Buffer scratch(program, 0, 4);
  const Rank me = program.rank(0);
  me.copy(scratch.slice(0, 3), me.get_input_buffer().slice(0, 3), 0);
  if (synchronised) me.barrier({0});
  me.copy(me.get_output_buffer().slice(0, 2), scratch.slice(1, 3), 0);
  me.copy(me.get_output_buffer()[2], scratch[0], 0);
  return program;
}

TEST(Litmus, nop_orders_threads) { expect_promised(shifted(true)); }
TEST(Litmus, operations_do_not_order_threads) { expect_not_promised(shifted(false)); }

Program two_blocks(bool ordered) {
  Program program = program_of(1, {{0, 0, 0, 0}});
  const Buffer scratch(program, 0, 1);
  const Rank me = program.rank(0);
  me.copy(scratch[0], input(program, 0), 0);
  if (ordered) me.barrier({0, 1});
  me.copy(output(program, 0), scratch[0], 1);
  return program;
}

TEST(Litmus, barrier_orders_blocks) { expect_promised(two_blocks(true)); }
TEST(Litmus, blocks_run_in_any_order) { expect_not_promised(two_blocks(false)); }

TEST(Litmus, semaphore_orders_blocks) {
  Program program = program_of(1, {{0, 0, 0, 0}});
  const Buffer scratch(program, 0, 1);
  const Semaphore full(program, 0, 0);
  const Rank me = program.rank(0);
  me.copy(scratch[0], input(program, 0), 0);
  full.release(0, SyncType::none);
  full.acquire(1, SyncType::none);
  me.copy(output(program, 0), scratch[0], 1);
  expect_promised(program, 3);
}

/// One block puts, the blocks synchronise, and the other one signals.
Program signalled_by_the_other_block(bool relaxed) {
  Program program = program_of(2, sent);
  const Buffer scratch(program, 1, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.put(scratch[0], input(program, 0), 0);
  program.rank(0).barrier({0, 1});
  there.signal(1, SyncType::none, relaxed);
  back.wait(0, SyncType::none);
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  return program;
}

TEST(Litmus, signal_publishes_what_a_barrier_gathered) {
  expect_promised(signalled_by_the_other_block(false));
}
TEST(Litmus, barrier_publishes_within_its_rank_only) {
  expect_not_promised(signalled_by_the_other_block(true));
}

/// A block puts, and another block of its rank reads the data back from the peer.
TEST(Litmus, barrier_shows_puts_within_its_rank) {
  Program program = program_of(2, {{0, 0, 0, 0}});
  const Buffer scratch(program, 1, 1);
  const MemoryChannel there(program, 1, 0);
  there.put(scratch[0], input(program, 0), 1);
  program.rank(0).barrier({0, 1});
  there.get(output(program, 0), scratch[0], 0);
  expect_promised(program);
}

/// Describes two ranks whose scratch a switch channel joins.
struct Joined {
  Program program;
  const Buffer first{program, 0, 1}, second{program, 1, 1};
  const SwitchChannel all{program, {0, 1}, BufferKind::scratch};

  explicit Joined(const std::vector<Result>& results) : program(program_of(2, results)) {}
};

/// A block writes data that the same block then reads through a switch channel.
Program switched(bool published) {
  Joined joined({{0, 0, 0, 0}, {0, 0, 1, 0}});
  auto& [program, first, second, all] = joined;
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  program.rank(1).copy(second[0], input(program, 1), 0);
  back.signal(0, SyncType::none);
  if (!published) there.wait(0, SyncType::none);
  program.rank(0).copy(first[0], input(program, 0), 0);
  program.rank(0).barrier({0});
  if (published) {
    there.signal(0, SyncType::none);
    there.wait(0, SyncType::none);
    back.wait(0, SyncType::none);
  }
  all.at_rank(0).reduce(0, 1, output(program, 0), 0);
  return std::move(program);
}

TEST(Litmus, switch_reads_what_was_published) { expect_promised(switched(true)); }
TEST(Litmus, nop_shows_a_switch_nothing) { expect_not_promised(switched(false)); }

/// Does the same with one thread that signals, while the other threads may continue.
Program switched_behind_a_signal(bool met) {
  Joined joined({{0, 0, 0, 0}, {0, 0, 1, 0}});
  auto& [program, first, second, all] = joined;
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  program.rank(1).copy(second[0], input(program, 1), 0);
  back.signal(0, SyncType::none);
  program.rank(0).copy(first[0], input(program, 0), 0);
  there.wait(0, SyncType::none);
  there.signal(0, SyncType::none);
  if (met) program.rank(0).barrier({0});
  all.at_rank(0).reduce(0, 1, output(program, 0), 0);
  back.wait(0, SyncType::none);
  return std::move(program);
}

TEST(Litmus, signal_shows_a_switch_when_the_threads_met) { expect_promised(switched_behind_a_signal(true)); }
TEST(Litmus, signal_shows_a_switch_nothing_before) { expect_not_promised(switched_behind_a_signal(false)); }

/// A block puts to a peer, and another block of its rank reads the data through the switch.
Program switched_behind_a_barrier(bool signalled) {
  Joined joined({{0, 0, 0, 0}, {0, 0, 0, 0}});
  auto& [program, first, second, all] = joined;
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  program.rank(0).copy(first[0], input(program, 0), 0);
  there.put(second[0], input(program, 0), 0);
  if (signalled) there.signal(0, SyncType::none);
  program.rank(0).barrier({0, 1});
  all.at_rank(0).reduce(0, 1, output(program, 0), 1);
  if (signalled) back.wait(0, SyncType::none);
  return std::move(program);
}

TEST(Litmus, barrier_shows_a_switch_what_was_signalled) { expect_promised(switched_behind_a_barrier(true)); }
TEST(Litmus, barrier_shows_a_switch_no_puts) { expect_not_promised(switched_behind_a_barrier(false)); }

/// A block stores through a switch channel, and reads its own rank's part.
Program stored_by_a_switch(bool released) {
  Joined joined({{0, 0, 0, 0}});
  auto& [program, first, second, all] = joined;
  all.at_rank(0).broadcast(input(program, 0), 0, 1, 0);
  program.rank(0).barrier(released ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0});
  program.rank(0).copy(output(program, 0), first[0], 0);
  return std::move(program);
}

TEST(Litmus, barrier_shows_what_a_switch_stored_here) { expect_promised(stored_by_a_switch(true)); }
TEST(Litmus, nop_shows_nothing_that_a_switch_stored) { expect_not_promised(stored_by_a_switch(false)); }

}  // namespace
}  // namespace chorale::litmus
