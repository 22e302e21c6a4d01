/// \file
/// Checks that launches in a row, each with new data, all give exact results.

#include <algorithm>
#include <thread>

#include "caller.hpp"

namespace chorale::test {
namespace {

class Replay : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Replay, both_ways, way_name);

void back_to_back(Executor& executor, Data& data, const Plan& plan, int runs) {
  for (int run = 0; run < runs; ++run) {
    data.before(run);
    executor.execute(plan, data.arguments(), data.stream());
    data.after(run);
  }
}

TEST_P(Replay, very_many_launches_without_the_host) {
  expect_good({.body = [](Rank& me) {
    const int runs = device().many();
    Executor executor(me.world, me.config);
    Data data(me, runs);
    for (const Plan* plan : {&by_signals(me), &by_packets(me), &in_two_steps(me)}) {
      data.load(7);
      back_to_back(executor, data, *plan, runs);
      executor.synchronize(data.stream());
      data.compare();
    }
  }});
}

TEST_P(Replay, several_plans_each_on_its_stream) {
  expect_good({.body = [](Rank& me) {
    const int runs = std::min(200, device().many());
    Executor executor(me.world, me.config);
    const Plan* const plans[] = {&by_signals(me), &by_packets(me), &in_two_steps(me)};
    std::vector<Data> data;
    for (int of = 0; of < 3; ++of) {
      data.emplace_back(me, runs).load(of * 1000);
      executor.prepare(*plans[of], data.back().arguments());
    }
    for (int run = 0; run < runs; ++run) {
      for (size_t of = 0; of < 3; ++of) {
        data[of].before(run);
        executor.execute(*plans[of], data[of].arguments(), data[of].stream());
        data[of].after(run);
      }
    }
    for (Data& of : data) {
      executor.synchronize(of.stream());
      of.compare();
    }
  }});
}

TEST_P(Replay, several_communicators_with_no_order_between_them) {
  expect_good({.body = [](Rank& me) {
    const int runs = std::min(200, device().many());
    // All calls that may wait for the device come before the first launch or after the last.
    Caller one(me), other(me, me.second);
    Data one_data(me, runs), other_data(me, runs);
    one_data.load(0);
    other_data.load(5000);
    one.executor.prepare(by_signals(me), one_data.arguments());
    other.executor.prepare(by_packets(me), other_data.arguments());
    one.run_well(by_signals(me), 1);
    other.run_well(by_packets(me), 2);
    me.world.barrier();
    std::exception_ptr error;
    {
      std::jthread thread([&] {
        try {
          device().use(me.rank());
          back_to_back(other.executor, other_data, by_packets(me), runs);
          other.executor.synchronize(other_data.stream());
        } catch (...) {
          error = std::current_exception();
          me.world.abort("the other communicator has failed");
        }
      });
      back_to_back(one.executor, one_data, by_signals(me), runs);
      one.executor.synchronize(one_data.stream());
    }
    if (error) std::rethrow_exception(error);
    one_data.compare();
    other_data.compare();
  }});
}

}  // namespace
}  // namespace chorale::test
