// Tests calls whose ranks publish their buffers: any rank may pass any memory in any call. One GPU is enough,
// because ranks may share it.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chorale/compile.hpp"
#include "chorale/executor.hpp"
#include "chorale/json.hpp"
#include "executor/cuda/memory/registry.hpp"
#include "executor/run/staging.hpp"
#include "tests/cuda/memory_kinds.hpp"
#include "tests/cuda/ranks.hpp"
#include "tests/has.hpp"

namespace chorale::test {
namespace {

using cuda::check;
using Words = std::vector<int32_t>;

constexpr size_t count = 5000;  ///< of the words of an input
constexpr uint64_t bytes = count * 4;

Plan plan_named(const std::string& name, int ranks) {
  return load(std::string(CHORALE_SOURCE_DIR) + "/plans/shipped/" + name + "_" + std::to_string(ranks) +
              ".json");
}

Config config_of_test() {
  Config config;
  config.backend = "cuda";
  return config;
}

int32_t word(int rank, int turn, size_t at) { return int32_t(at) * 7 + rank * 1000003 + turn * 7919; }

Words words_of(int rank, int turn) {
  Words words(count);
  for (size_t at = 0; at < count; ++at) words[at] = word(rank, turn, at);
  return words;
}

void write(char* to, const Words& words) {
  check(cudaMemcpy(to, words.data(), words.size() * 4, cudaMemcpyDefault), "writing a buffer");
}

Words read(const char* from, size_t n) {
  Words words(n);
  check(cudaMemcpy(words.data(), from, n * 4, cudaMemcpyDefault), "reading a buffer");
  return words;
}

/// Holds an executor, and the plan of a collective.
///
/// Threads that share a GPU call together, because memory is allocated and copied only while no kernel waits
/// for a rank (share_gpus.hpp).
class Caller {
 public:
  Caller(World& world, const std::string& name) : Caller(world, plan_named(name, world.ranks())) {}
  Caller(World& world, const Plan& plan, const Config& config = config_of_test())
      : world_(world), plan_(plan), gathers_(plan_.collective == "allgather"), executor_(world, config) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  }
  ~Caller() { cudaStreamDestroy(stream_); }
  Caller(const Caller&) = delete;

  /// Returns the number of words of an output.
  size_t results() const { return gathers_ ? count * size_t(world_.ranks()) : count; }

  /// Enqueues a call.
  void call(const char* in, char* out) { call(in, out, results() * 4, DType::i32); }
  void call(const char* in, char* out, uint64_t bytes, DType dtype) {
    executor_.execute_staged(plan_, {.in = in, .out = out, .bytes = bytes, .dtype = dtype, .op = {}},
                             stream_);
  }

  /// Waits for all ranks, runs `enqueue`, and waits for the work of this rank.
  template <class Enqueue>
  void together(const Enqueue& enqueue) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    world_.barrier();
    enqueue();
    executor_.synchronize(stream_);
    world_.barrier();
  }

  Words expected(int turn) const {
    Words words(results());
    for (size_t at = 0; at < words.size(); ++at) {
      if (gathers_) {
        words[at] = word(int(at / count), turn, at % count);
        continue;
      }
      for (int rank = 0; rank < world_.ranks(); ++rank)
        words[at] = int32_t(uint32_t(words[at]) + uint32_t(word(rank, turn, at)));
    }
    return words;
  }

  /// Calls with buffers, and returns "" if the result is right.
  std::string wrong(const char* in, char* out, int turn) {
    write(const_cast<char*>(in), words_of(world_.rank(), turn));
    write(out, Words(results(), -1));
    together([&] { call(in, out); });
    return read(out, results()) == expected(turn) ? "" : "wrong result in turn " + std::to_string(turn);
  }

  Executor& executor() { return executor_; }
  cudaStream_t stream() const { return stream_; }

 private:
  World& world_;
  const Plan plan_;
  const bool gathers_;
  Executor executor_;
  cudaStream_t stream_ = nullptr;
};

/// Owns a graph of a call, and runs it.
class Graph {
 public:
  Graph(Caller& caller, const Buffer& in, const Buffer& out) : caller_(caller), in_(in), out_(out) {
    cudaStream_t const stream = caller.stream();
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "a capture");
    caller.call(in.data, out.data);
    check(cudaStreamEndCapture(stream, &graph_), "the end of a capture");
    check(cudaGraphInstantiate(&runs_, graph_, 0), "a graph");
  }
  ~Graph() {
    cudaGraphExecDestroy(runs_);
    cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;

  /// Returns whether the result is right.
  bool right(int rank, int turn) {
    write(in_.data, words_of(rank, turn));
    caller_.together([&] { check(cudaGraphLaunch(runs_, caller_.stream()), "the launch of a graph"); });
    return read(out_.data, count) == caller_.expected(turn);
  }

 private:
  Caller& caller_;
  const Buffer in_, out_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t runs_ = nullptr;
};

/// Names the plans of these tests: peers read inputs, write outputs, or do both.
const std::vector<std::string> names{"allreduce_all_pairs", "allgather_direct", "allreduce_ring"};

class Published : public OnRanks {
 protected:
  void SetUp() override { cuda::Registry::most_wait = std::chrono::seconds(60); }
};

/// Each rank passes other memory in each turn, and not the same kind as the others.
TEST_P(Published, EveryRankMayPassOtherMemoryInEveryCall) {
  CHORALE_NEEDS_GPUS(1);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    expect_good([&](World& world) -> std::string {
      Caller caller(world, name);
      std::vector<Buffer> kept;
      for (int turn = 0; turn < 12; ++turn) {
        // The inputs of the ranks change in different turns, and the outputs in others.
        if (turn == 0 || turn % (world.rank() + 2) == 0) {
          kept.push_back(malloced(bytes));
          kept.push_back(malloced(caller.results() * 4));
        }
        const Buffer& out = kept.back();
        const Buffer& in = kept[kept.size() - 2 - (turn % 5 == 4 && kept.size() > 2 ? 2 : 0)];
        if (const std::string why = caller.wrong(in.data, out.data, turn); !why.empty()) return why;
        if (const std::string why = caller.executor().why_copied(); !why.empty()) return "copied: " + why;
      }
      return "good";
    });
  }
}

/// One rank passes memory that peers cannot map, and the others do not know.
TEST_P(Published, MemoryThatPeersCannotMapIsCopied) {
  CHORALE_NEEDS_GPUS(1);
  struct Kind {
    std::string name;
    std::function<Buffer(uint64_t)> make;
    std::string why;
  };
  std::vector<Kind> kinds{
      {"at an address of 4", [](uint64_t size) { return at_offset(size, 4); }, "aligned"},
      {"at an offset", [](uint64_t size) { return at_offset(size, 1 << 20); }, ""},
      {"of cuMemCreate", [](uint64_t) { return owned(make_mapped(1), 0); }, "cudaMalloc()"}};
  for (const MemoryKind& kind : memory_kinds()) {
    if (kind.name == "StreamOrderedPool" || kind.name == "PinnedHost")
      kinds.push_back({kind.name, kind.make, kind.why_not});
  }
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    expect_good([&](World& world) -> std::string {
      Caller caller(world, name);
      const Buffer in = malloced(bytes), out = malloced(caller.results() * 4);
      for (size_t at = 0; at < kinds.size(); ++at) {
        const int turn = int(at) * 2;
        const bool other = size_t(world.rank()) == at % 2;
        const Buffer mine_in = other ? kinds[at].make(bytes) : in;
        const Buffer mine_out = other ? kinds[at].make(caller.results() * 4) : out;
        std::string why = caller.wrong(mine_in.data, mine_out.data, turn);
        if (!why.empty()) return kinds[at].name + ": " + why;
        why = caller.executor().why_copied();
        if (!has(why, other ? kinds[at].why : "") || why.empty() != (!other || kinds[at].why.empty()))
          return kinds[at].name + " said: " + why;
        why = caller.wrong(in.data, out.data, turn + 1);
        if (!why.empty() || !caller.executor().why_copied().empty()) return "afterwards: " + why;
      }
      return "good";
    });
  }
}

/// A program that frees memory often gets the same address for the next one. Peers must not use the old one.
TEST_P(Published, FreedMemoryIsForgotten) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Caller caller(world, "allreduce_all_pairs");
    for (int turn = 0; turn < 20; ++turn) {
      const Buffer in = malloced(bytes), out = malloced(bytes);
      if (const std::string why = caller.wrong(in.data, out.data, turn); !why.empty()) return why;
    }
    return "good";
  });
}

TEST_P(Published, InPlace) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Caller sums(world, "allreduce_all_pairs"), gathers(world, "allgather_direct");
    for (int turn = 0; turn < 6; ++turn) {
      const Buffer sum = malloced(bytes), all = malloced(gathers.results() * 4);
      const char* const mine = all.data + uint64_t(world.rank()) * bytes;
      const auto right = [&](Caller& caller, const char* in, char* out) {
        write(const_cast<char*>(in), words_of(world.rank(), turn));
        caller.together([&] { caller.call(in, out); });
        return read(out, caller.results()) == caller.expected(turn);
      };
      if (!right(sums, sum.data, sum.data)) return "wrong sum";
      if (!right(gathers, mine, all.data)) return "wrong gather";
    }
    return "good";
  });
}

/// Messages need not be whole units of 16 bytes. The copy of an output then follows an input of any length.
TEST_P(Published, MessagesOfAnyLength) {
  CHORALE_NEEDS_GPUS(1);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    expect_good([&](World& world) -> std::string {
      Caller caller(world, name);
      const bool gathers = caller.results() != count;
      const size_t ranks = size_t(world.ranks());
      for (const size_t odd : {count * 4 - 2, count * 4 - 15}) {
        for (const std::string kind : {"mapped", "malloced", "in place", "in place, mapped"}) {
          const size_t results = gathers ? odd * ranks : odd;
          const bool mapped = has(kind, "mapped");
          const auto make = [&](uint64_t size) { return mapped ? owned(make_mapped(1), 0) : malloced(size); };
          const Buffer out = make(results), other = make(odd);
          const bool in_place = has(kind, "in place");
          char* const in = !in_place ? other.data : out.data + (gathers ? size_t(world.rank()) * odd : 0);
          std::vector<uint8_t> mine(odd), all(results), expected(results);
          for (size_t at = 0; at < odd; ++at) mine[at] = uint8_t(at * 7 + size_t(world.rank()) * 31);
          for (size_t at = 0; at < results; ++at) {
            for (size_t rank = 0; rank < ranks; ++rank) {
              if (gathers && rank != at / odd) continue;
              expected[at] = uint8_t(expected[at] + (gathers ? at % odd : at) * 7 + rank * 31);
            }
          }
          check(cudaMemcpy(in, mine.data(), odd, cudaMemcpyDefault), "writing a buffer");
          caller.together([&] { caller.call(in, out.data, results, DType::u8); });
          check(cudaMemcpy(all.data(), out.data, results, cudaMemcpyDefault), "reading a buffer");
          if (all != expected) return kind + ": wrong result of " + std::to_string(odd);
        }
      }
      return "good";
    });
  }
}

/// A plan whose peers access buffers may move only packets on some rank, and the rank still publishes.
TEST_P(Published, PlansThatMoveOnlyPackets) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Plan plan = plan_named("allreduce_one_shot_b4", world.ranks());
    RemoteBuffer remote{};
    remote.rank = 1;
    remote.buffer = BufferKind::output;
    plan.gpus[0].remote_buffers.push_back(remote);
    plan.extension.verified.clear();  // the certificate is of the plan without it
    Caller caller(world, plan);
    const Buffer in = malloced(bytes), out = malloced(bytes);
    write(in.data, words_of(world.rank(), 0));
    constexpr size_t whole = 4096;
    caller.together([&] { caller.call(in.data, out.data, whole * 4, DType::i32); });
    Words expected = caller.expected(0);
    expected.resize(whole);
    return read(out.data, whole) == expected ? "good" : "wrong result";
  });
}

/// Bindings come and go with bounce buffers of different sizes, and a graph keeps those that it uses.
TEST_P(Published, EvictionsKeepTheMemoryOfGraphs) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Config config = config_of_test();
    config.bindings = 2u;
    Caller caller(world, plan_named("allreduce_ring", world.ranks()), config);
    const auto make = [&](uint64_t size) {
      return world.rank() == 1 ? owned(make_mapped(int(size / unit) + 1), 0) : malloced(size);
    };
    const Buffer in = make(bytes), out = make(bytes);
    if (const std::string why = caller.wrong(in.data, out.data, 0); !why.empty()) return why;
    Graph graph(caller, in, out);
    for (int turn = 1; turn < 12; ++turn) {
      const size_t n = size_t(turn * 7919 % 12 + 1) << 18;  // words
      const Buffer large_in = make(n * 4), large_out = make(n * 4);
      write(large_in.data, Words(n, world.rank() + turn));
      caller.together([&] { caller.call(large_in.data, large_out.data, n * 4, DType::i32); });
      if (read(large_out.data, n) != Words(n, world.ranks() * (world.ranks() - 1) / 2 + world.ranks() * turn))
        return "wrong result of " + std::to_string(n);
      if (!graph.right(world.rank(), turn)) return "wrong result of the graph";
    }
    return "good";
  });
}

/// Messages of one part run in pieces, whatever the memory of each rank.
TEST_P(Published, LongMessages) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    constexpr size_t n = (size_t(128) << 20) + 4;
    for (const char* const name : {"allreduce_all_pairs", "broadcast_direct"}) {
      Caller caller(world, name);
      const bool sends = std::string(name) == "broadcast_direct";
      const Buffer in = world.rank() == 1 ? owned(make_mapped(65), 0) : malloced(n);
      const Buffer out = world.rank() == 0 ? owned(make_mapped(65), 0) : malloced(n);
      write(in.data, Words(n / 4, world.rank() + 1));
      const char* const passed = sends && world.rank() != 0 ? nullptr : in.data;
      caller.together([&] { caller.call(passed, out.data, n, DType::i32); });
      if (read(out.data, n / 4) != Words(n / 4, sends ? 1 : 3)) return std::string("wrong result of ") + name;
    }
    return "good";
  });
}

/// Checks long messages of several parts.
class Parts {
 public:
  static constexpr size_t words = 25604;  ///< of a part, whose bytes are a multiple of 16

  Parts(World& world, const std::string& name)
      : ranks_(size_t(world.ranks())),
        rank_(size_t(world.rank())),
        shipped_(plan_named(name, world.ranks())),
        both_(also_in_place(shipped_)),
        plan_(both_ ? *both_ : shipped_),
        proved_in_place_(both_.has_value()),
        caller_(world, plan_) {}

  /// Returns "" if the result is right with buffers that make(bytes) makes.
  template <class Make>
  std::string wrong(const Make& make, bool in_place) {
    ++salt_;  // the memory may hold an earlier result
    const bool gathers = plan_.collective == "allgather", scatters = plan_.collective == "reducescatter";
    const size_t sent = gathers ? 1 : ranks_, received = scatters ? 1 : ranks_;
    const Buffer one = make(sent * words * 4), other = make(received * words * 4);
    char* in = one.data;
    char* out = other.data;
    if (in_place && gathers) in = out + rank_ * words * 4;
    if (in_place && scatters) out = in + rank_ * words * 4;
    if (in_place && !gathers && !scatters) out = in;
    Words mine, expected;
    for (size_t part = 0; part < sent; ++part)
      append(mine, [&](size_t at) { return value(rank_, part, at); });
    for (size_t part = 0; part < received; ++part) {
      append(expected, [&](size_t at) {
        if (!scatters) return value(part, gathers ? 0 : rank_, at);
        uint32_t sum = 0;
        for (size_t rank = 0; rank < ranks_; ++rank) sum += value(rank, rank_, at);
        return sum;
      });
    }
    const uint64_t bytes = std::max(sent, received) * words * 4;
    Arguments arguments{.in = in, .out = out, .bytes = bytes, .dtype = DType::i32, .op = {}};
    arguments.proved_in_place = proved_in_place_;
    if (caller_.executor().stages(plan_, arguments)) return "the buffers are not published";
    write(one.data, Words(sent * words, -1));
    write(other.data, Words(received * words, -1));
    write(in, mine);
    caller_.together([&] { caller_.executor().execute_staged(plan_, arguments, caller_.stream()); });
    return read(out, expected.size()) == expected ? "" : "wrong result";
  }

 private:
  uint32_t value(size_t rank, size_t part, size_t at) const {
    return uint32_t(salt_ * 77777 + rank * 1000003 + part * 5003 + at * 7);
  }
  template <class Value>
  static void append(Words& to, const Value& value) {
    for (size_t at = 0; at < words; ++at) to.push_back(int32_t(value(at)));
  }

  const size_t ranks_, rank_;
  const Plan shipped_;
  const std::optional<Plan> both_;  ///< the plan that is right in place and not
  const Plan& plan_;
  const bool proved_in_place_;
  Caller caller_;
  uint32_t salt_ = 0;
};

/// A piece of a message of several parts is a range of each part. The parts of a copy are adjacent, and those
/// of the caller's buffers are not.
TEST_P(Published, LongMessagesOfSeveralParts) {
  CHORALE_NEEDS_GPUS(1);
  Staging::most_published = uint64_t(1) << 16;
  std::vector<const char*> all{"allgather_direct", "allgather_ring", "reducescatter_direct",
                               "alltoall_direct", "alltoall_by_peer"};
#if !defined(CHORALE_ON_FAKE_CUDA)  // which has no port channels
  all.insert(all.end(), {"allgather_by_port", "alltoall_by_port"});
#endif
  for (const char* const name : all) {
    SCOPED_TRACE(name);
    expect_good([name](World& world) -> std::string {
      Parts parts(world, name);
      for (const std::string kind : {"malloced", "mapped", "in place", "in place, mapped"}) {
        const auto make = [&](uint64_t size) {
          const bool mapped = has(kind, "mapped") && world.rank() == 1;
          return mapped ? owned(make_mapped(int(size / unit) + 1), 0) : malloced(size);
        };
        const std::string wrong = parts.wrong(make, has(kind, "in place"));
        if (!wrong.empty()) return kind + ": " + wrong;
      }
      return "good";
    });
  }
  Staging::most_published = Executor::most_direct;
}

/// A graph keeps the buffers of its capture, also when later calls publish others.
TEST_P(Published, GraphsKeepTheirBuffers) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Caller caller(world, "allreduce_all_pairs");
    const Buffer in = malloced(bytes), out = malloced(bytes), other_in = malloced(bytes),
                 other_out = malloced(bytes);
    if (const std::string why = caller.wrong(other_in.data, other_out.data, 0); !why.empty()) return why;
    Graph graph(caller, in, out);
    for (int turn = 1; turn < 5; ++turn) {
      if (!graph.right(world.rank(), turn)) return "wrong result of the graph";
      if (const std::string why = caller.wrong(other_in.data, other_out.data, turn); !why.empty()) return why;
    }
    return "good";
  });
}

/// After a stop and a reset, ranks publish known and other memory as before.
TEST_P(Published, GoOnAfterAReset) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Caller caller(world, "allreduce_all_pairs");
    const Buffer in = malloced(bytes), out = malloced(bytes);
    std::vector<Buffer> others;
    for (int turn = 0; turn < 4; ++turn) {
      if (const std::string why = caller.wrong(in.data, out.data, turn); !why.empty()) return why;
      const Buffer other_in = others.emplace_back(malloced(bytes)),
                   other_out = others.emplace_back(malloced(bytes));
      const std::string why = caller.wrong(other_in.data, other_out.data, turn + 10);
      if (!why.empty()) return "other memory: " + why;
      if (const std::string copied = caller.executor().why_copied(); !copied.empty()) return copied;
      world.barrier();
      // One rank alone calls, so its kernel waits until the other one stops the world.
      if (world.rank() == 1) world.abort("a test");
      try {
        if (world.rank() == 0) caller.call(in.data, out.data);
        caller.executor().synchronize(caller.stream());
        return "the world did not stop";
      } catch (const RunError&) {
      }
      world.reset();
    }
    return "good";
  });
}

CHORALE_FOR_ALL_RANKS(Of, Published);

}  // namespace
}  // namespace chorale::test
