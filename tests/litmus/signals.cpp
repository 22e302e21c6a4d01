// These tests are about signals and waits on memory channels.

#include "litmus.hpp"

namespace chorale::litmus {
namespace {

constexpr bool relaxed = true;

/// Rank 0 puts its input into scratch of rank 1 and signals; rank 1 waits and copies it to its output.
Program signalled_message(bool relaxed_signal, bool relaxed_wait) {
  Program program = program_of(2, sent);
  const Buffer scratch(program, 1, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.put(scratch[0], input(program, 0), 0);
  program.rank(0).barrier({0});
  there.signal(0, SyncType::none, relaxed_signal);
  back.wait(0, SyncType::none, relaxed_wait);
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  return program;
}

TEST(Litmus, signal_publishes_puts) { expect_promised(signalled_message(false, false)); }
TEST(Litmus, relaxed_signal_publishes_nothing) { expect_not_promised(signalled_message(relaxed, false)); }
TEST(Litmus, relaxed_wait_sees_nothing) { expect_not_promised(signalled_message(false, relaxed)); }

/// Does the same without a synchronisation of the block's threads.
TEST(Litmus, signal_publishes_all_threads) {
  Program program = program_of(2, {{1, 0, 0, 0}, {1, 1, 0, 1}, {1, 2, 0, 2}});
  const Buffer scratch(program, 1, 3);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.put(scratch.slice(0, 3), program.rank(0).get_input_buffer().slice(0, 3), 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  program.rank(1).copy(program.rank(1).get_output_buffer().slice(0, 3), scratch.slice(0, 3), 0);
  expect_promised(program);
}

/// Rank 0 puts data there and signals rank 1, and rank 1 signals rank 2.
Program told_by_another(bool relaxed_second) {
  Program program = program_of(3, {{2, 0, 0, 0}});
  const Buffer scratch(program, 2, 1);
  const MemoryChannel to_2(program, 2, 0), to_1(program, 1, 0), from_0(program, 0, 1), on(program, 2, 1),
      from_1(program, 1, 2);
  to_2.put(scratch[0], input(program, 0), 0);
  to_1.signal(0, SyncType::none, relaxed_second);
  from_0.wait(0, SyncType::none);
  on.signal(0, SyncType::none);
  from_1.wait(0, SyncType::none);
  program.rank(2).copy(output(program, 2), scratch[0], 0);
  return program;
}

TEST(Litmus, signals_are_cumulative) { expect_promised(told_by_another(false)); }
TEST(Litmus, a_relaxed_link_breaks_the_chain) { expect_not_promised(told_by_another(relaxed)); }

/// One thread signals, and another one signals after it on the same channel, relaxed.
Program signalled_twice(bool met) {
  Program program = program_of(2, sent);
  const Buffer scratch(program, 1, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.put(scratch[0], input(program, 0), 0);
  there.signal(0, SyncType::none);
  if (met) program.rank(0).barrier({0});
  there.signal(0, SyncType::none, relaxed);
  back.wait(0, SyncType::none);
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  back.wait(0, SyncType::none, relaxed);
  return program;
}

TEST(Litmus, relaxed_signal_stays_behind_where_threads_met) { expect_promised(signalled_twice(true)); }
TEST(Litmus, relaxed_signal_overtakes_a_signal) { expect_not_promised(signalled_twice(false)); }

/// A post does not publish what is put after it.
TEST(Litmus, wait_sees_nothing_behind_its_post) {
  Program program = program_of(2, sent);
  const Buffer scratch(program, 1, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.signal(0, SyncType::none);
  there.put(scratch[0], input(program, 0), 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  program.rank(1).copy(output(program, 1), scratch[0], 0);
  back.wait(0, SyncType::none);
  expect_not_promised(program);
}

/// Rank 1 reads scratch of rank 0, which rank 0 then overwrites.
Program overwritten_when_read(bool relaxed_signal, bool synchronised) {
  Program program = program_of(2, {{1, 0, 0, 0}, {0, 1, 0, 1}});
  const Buffer scratch(program, 0, 1);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  program.rank(0).copy(scratch[0], input(program, 0), 0);
  there.signal(0, SyncType::none);
  back.wait(0, SyncType::none);
  back.get(output(program, 1), scratch[0], 0);
  if (synchronised) program.rank(1).barrier({0});
  back.signal(0, SyncType::none, relaxed_signal);
  there.wait(0, SyncType::none, relaxed_signal);
  program.rank(0).copy(scratch[0], input(program, 0, 1), 0);
  program.rank(0).barrier({0});
  program.rank(0).copy(output(program, 0, 1), scratch[0], 0);
  return program;
}

TEST(Litmus, signal_ends_reads) { expect_promised(overwritten_when_read(false, false)); }
TEST(Litmus, relaxed_signal_ends_synchronised_reads) {
  expect_promised(overwritten_when_read(relaxed, true));
}
TEST(Litmus, relaxed_signal_ends_no_reads_of_other_threads) {
  expect_not_promised(overwritten_when_read(relaxed, false));
}

/// Rank 1 may read the input of rank 0 when it knows that the launch of rank 0 has begun.
Program read_from_input(bool told) {
  Program program = program_of(2, sent);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  there.signal(0, SyncType::none, relaxed);
  if (told) back.wait(0, SyncType::none, relaxed);
  back.get(output(program, 1), input(program, 0), 0);
  if (!told) back.wait(0, SyncType::none, relaxed);
  back.signal(0, SyncType::none);
  there.wait(0, SyncType::none);
  return program;
}

TEST(Litmus, relaxed_signal_shows_what_preceded_the_launch) { expect_promised(read_from_input(true)); }
TEST(Litmus, launches_do_not_begin_together) {
  expect_not_promised(read_from_input(false), Kind::overwrite_seen);
}

/// Signals are counted: two posts satisfy two waits, in whatever order they are made.
TEST(Litmus, posts_are_never_lost) {
  Program program = program_of(2, {{1, 0, 0, 0}, {1, 1, 0, 1}});
  const Buffer scratch(program, 1, 2);
  const MemoryChannel there(program, 1, 0), back(program, 0, 1);
  for (int chunk = 0; chunk < 2; ++chunk) {
    there.put(scratch[chunk], input(program, 0, chunk), 0);
    there.signal(0, SyncType::none);
  }
  for (int chunk = 0; chunk < 2; ++chunk) {
    back.wait(0, SyncType::none);
    program.rank(1).copy(output(program, 1, chunk), scratch[chunk], 0);
  }
  expect_promised(program);
}

}  // namespace
}  // namespace chorale::litmus
