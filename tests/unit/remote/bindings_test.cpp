// These tests send messages for bindings that do not exist yet or no longer exist, and for runs that have not
// begun or have ended.

#include "ends.hpp"

namespace chorale::test {
namespace {

/// A message for a run that has not begun waits, and so do later messages in its stream. Another binding's
/// messages do not wait, even if more messages wait than may be in flight.
TEST(RemoteBindings, messages_for_a_later_run_wait_and_hold_up_no_other_binding) {
  expect_good(2, [](World& world) -> std::string {
    constexpr size_t bytes = 8 << 20, orders = 10;
    End end(world);
    Bound waits(world, bytes, true), other(world, 64);
    end.bind(waits);
    end.bind(other);
    if (world.rank() == 1) end.endpoint.begin_run(waits.number, 1, {}, waits.region());
    world.barrier();
    const std::vector<char> large = data_of(0, bytes), small = data_of(0, 64);
    if (world.rank() == 0) {
      // Scratch and signals need no launch.
      end.send(waits, {.peer = 1, .run = 2, .buffer = Bound::scratch}, small.data(), 64, true);
      for (size_t at = 0; at < orders; ++at)
        end.send(waits, {.peer = 1, .run = 2}, large.data(), bytes, false);
      end.send(waits, {.peer = 1, .run = 2, .buffer = Bound::scratch, .at = 64}, small.data(), 64, true);
      for (int turn = 0; turn < 20; ++turn) end.send(other, {1}, small.data(), 64, true);
      if (!comes(other.done_at(1), 20)) return "another binding is held up";
      if (!comes(waits.done_at(1), 1)) return "scratch is not written before the run";
      world.barrier();
      if (!comes(waits.done_at(1), orders + 2)) return "not all is done";
      end.settle();
    } else {
      if (!comes(other.signal_of(0), 20)) return "another binding is held up";
      if (!comes(waits.signal_of(0), 1)) return "scratch is not written before the run";
      world.barrier();
      std::this_thread::sleep_for(100ms);
      if (waits.of(0)[1] != 0 || waits.of(0, Bound::scratch)[65] != 0) return "it has not waited for the run";
      if (load_acquire(waits.signal_of(0)) != 1) return "the signal has overtaken the data";
      end.endpoint.begin_run(waits.number, 2, {}, waits.region());
      if (!comes(waits.signal_of(0), 2)) return "no signal when the run has begun";
      if (!waits.has(0, large)) return "wrong data";
      end.settle();
    }
    world.barrier();
    return "good";
  });
}

/// Sends to the output of rank 1 after its run has ended, or after the next one has begun.
void expect_refused_after_the_run(bool next_has_begun) {
  const std::string text =
      "rank 0 has put into the output of rank 1 after the launch there had ended: the plan does not make it "
      "wait; chorale check shows where";
  expect_from_hosts({text, text}, [&](World& world) -> std::string {
    End end(world);
    Bound bound(world, 64, true);
    end.bind(bound);
    const std::vector<char> mine = data_of(world.rank(), 64);
    if (world.rank() == 1) {
      end.endpoint.begin_run(bound.number, 1, {}, bound.region());
      end.endpoint.end_run(bound.number);
      if (next_has_begun) end.endpoint.begin_run(bound.number, 2, {}, bound.region());
    }
    world.barrier();
    if (world.rank() == 0) {
      // These need no launch.
      end.send(bound, {.peer = 1, .run = 1, .buffer = Bound::scratch}, mine.data(), 64, true);
      if (!comes(bound.done_at(1), 1)) return "scratch and signals are refused";
      end.send(bound, {.peer = 1, .run = 1}, mine.data(), 64, true);
    }
    const std::string stop = stop_of(world);
    return load_acquire(bound.signal_of(0)) < 2 && bound.of(0)[1] == 0 ? stop : "it is carried out";
  });
}

TEST(RemoteBindings, a_put_into_the_output_after_the_run_stops_the_world) {
  expect_refused_after_the_run(false);
}
TEST(RemoteBindings, a_put_into_the_output_during_the_next_run_stops_the_world) {
  expect_refused_after_the_run(true);
}

TEST(RemoteBindings, messages_wait_for_the_binding_and_hold_up_no_other) {
  expect_good(2, [](World& world) -> std::string {
    End end(world);
    Bound first(world, 64), second(world, 64);
    const std::vector<char> mine = data_of(0, 64);
    end.bind(first);
    if (world.rank() == 0) {
      end.bind(second);
      end.send(second, {1}, mine.data(), 64, true);
      end.send(first, {1}, mine.data(), 64, true);
      if (!comes(first.done_at(1), 1)) return "the first is held up";
      if (load_acquire(second.done_at(1)) != 0) return "the second is done";
      world.barrier();
      if (!comes(second.done_at(1), 1)) return "the second is not done";
    } else {
      if (!comes(first.signal_of(0), 1)) return "the first is held up";
      world.barrier();
      end.bind(second);
      if (!comes(second.signal_of(0), 1) || !second.has(0, mine)) return "the second has not come";
    }
    end.settle();
    world.barrier();
    return "good";
  });
}

/// The sender is notified that its messages are done, although nothing is done with them.
TEST(RemoteBindings, messages_for_a_binding_that_is_gone_are_dropped) {
  expect_good(2, [](World& world) -> std::string {
    End end(world);
    Bound gone(world, 64, true), other(world, 64);
    end.bind(gone);
    end.bind(other);
    const std::vector<char> mine = data_of(0, 64);
    world.barrier();
    if (world.rank() == 0) {
      end.send(gone, {.peer = 1, .run = 1}, mine.data(), 64, true);  // it waits for its run
      end.send(other, {1}, mine.data(), 64, true);
      if (!comes(other.done_at(1), 1)) return "the other is not done";
      world.barrier();
      if (!comes(gone.done_at(1), 1)) return "what waited there is not done";
      end.send(gone, {.peer = 1, .run = 1}, mine.data(), 64, true);
      end.send(gone, {.peer = 1, .buffer = 99}, mine.data(), 64, true);
      if (!comes(gone.done_at(1), 3)) return "what comes afterwards is not done";
    } else {
      if (!comes(other.signal_of(0), 1)) return "the other has not come";
      std::this_thread::sleep_for(100ms);
      end.endpoint.unregister_binding(gone.number);
      world.barrier();
    }
    end.settle();
    world.barrier();
    if (load_acquire(gone.signal_of(0)) != 0 || gone.of(0)[1] != 0) return "something is done with them";
    return "good";
  });
}

/// A binding is destroyed at its sender while the receiver still waits for the run.
TEST(RemoteBindings, what_is_on_its_way_when_a_binding_goes_arrives_and_is_not_reported) {
  expect_good(2, [](World& world) -> std::string {
    End end(world);
    Bound bound(world, 64, true), other(world, 64);
    end.bind(bound);
    end.bind(other);
    const std::vector<char> mine = data_of(0, 64);
    world.barrier();
    if (world.rank() == 0) {
      end.send(bound, {.peer = 1, .run = 1}, mine.data(), 64, true);
      end.send(other, {1}, mine.data(), 64, true);
      if (!comes(other.done_at(1), 1)) return "the other is not done";
      end.endpoint.unregister_binding(bound.number);
      world.barrier();
      end.settle();
      if (load_acquire(bound.done_at(1)) != 0) return "it is reported to who is gone";
    } else {
      world.barrier();
      end.endpoint.begin_run(bound.number, 1, {}, bound.region());
      if (!comes(bound.signal_of(0), 1) || !bound.has(0, mine)) return "it has not come";
      end.settle();
    }
    world.barrier();
    return "good";
  });
}

/// A launch does not wait for a signal without data, so its binding may be destroyed before the signal is
/// sent.
TEST(RemoteBindings, a_last_signal_of_a_binding_that_goes_is_sent_and_not_reported) {
  expect_good(2, [](World& world) -> std::string {
    End end(world);
    Bound bound(world, 64), other(world, 64);
    end.bind(bound);
    end.bind(other);
    world.barrier();
    if (world.rank() == 0) {
      end.stop();
      end.send(bound, {1}, nullptr, 0, true);
      end.endpoint.unregister_binding(bound.number);
      end.send(bound, {1}, nullptr, 0, true);  // nothing more is accepted
      end.start();
      end.settle();
      if (load_acquire(bound.done_at(1)) != 0) return "it is reported to who is gone";
    } else if (!comes(bound.signal_of(0), 1)) {
      return "no signal";
    }
    end.settle();
    world.barrier();
    return load_acquire(bound.signal_of(0)) <= 1 ? "good" : "it has sent more";
  });
}

}  // namespace
}  // namespace chorale::test
