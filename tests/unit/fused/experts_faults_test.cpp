// These tests make mistakes, and kill ranks, while tokens are on their way.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "experts.hpp"
#include "tests/has.hpp"
#include "tests/unit/thrown.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale::fused {
namespace {

using namespace fused::test;
using namespace std::chrono_literals;
using chorale::test::has;
using chorale::test::thrown;

/// Returns the text of the error for options that `change` has changed.
template <class Change>
std::string refused(const Change& change) {
  std::string said;
  run_local(2, [&](World& world) {
    ExpertOptions options = options_of(Case{}, DType::bf16);
    change(options);
    const std::string mine = thrown([&] { ExpertExchange(world, options); });
    if (world.rank() == 0) said = mine;
  });
  return said;
}

/// Has the buffers of a right call without routes, for tests that change it.
struct Plain {
  Plain(uint64_t n, const ExpertExchange& exchange)
      : tokens(n * exchange.options().hidden),
        rows(exchange.max_rows() * exchange.options().hidden),
        counts(exchange.options().experts_per_rank),
        experts(n * exchange.options().top_k, -1) {
    call.tokens = tokens.data();
    call.experts = experts.data();
    call.rows = rows.data();
    call.counts = counts.data();
    call.room = exchange.max_rows();
  }

  std::vector<bf16> tokens, rows;
  std::vector<int32_t> counts, experts;
  Dispatch<int32_t> call;
};

TEST(ExpertFaults, OptionsThatAreOutOfRangeAreRefused) {
  EXPECT_TRUE(has(refused([](auto& of) { of.experts_per_rank = 0; }), "experts_per_rank = 0: expected 1 to"));
  EXPECT_TRUE(has(refused([](auto& of) { of.top_k = 0; }), "top_k = 0: expected 1 to"));
  EXPECT_TRUE(has(refused([](auto& of) { of.max_tokens = 0; }), "max_tokens = 0: expected 1 to"));
  EXPECT_TRUE(has(refused([](auto& of) { of.blocks = 2000; }), "blocks = 2000: expected 1 to 1024"));
  EXPECT_TRUE(has(refused([](auto& of) { of.hidden = 12; }),
                  "a token of type bf16 has 24 bytes, expected a multiple of 16: pad `hidden` to a multiple "
                  "of 8"));
  EXPECT_TRUE(has(refused([](auto& of) { of.result = DType::i32; }), "expected f32, f16 or bf16"));
  EXPECT_TRUE(has(refused([](auto& of) { of.packet = PacketForm::ll8; }), "expected ll16 or ll128"));
}

TEST(ExpertFaults, OtherOptionsOfOneRankAreAnErrorOfAll) {
  run_local(3, [&](World& world) {
    ExpertOptions options = options_of(Case{}, DType::bf16);
    if (world.rank() == 2) options.top_k = 5;
    const std::string said = thrown([&] { ExpertExchange(world, options); });
    EXPECT_TRUE(has(said, "the ranks make different expert exchanges: ranks 0 and 2")) << said;
  });
}

TEST(ExpertFaults, CallsThatWouldOverrunABufferAreRefused) {
  run_local(2, [&](World& world) {
    const Case with;
    ExpertExchange exchange(world, options_of(with, DType::bf16));
    Plain of(41, exchange);
    const Dispatch<int32_t> call = of.call;
    const auto said = [&](auto change) {
      Dispatch<int32_t> changed = call;
      change(changed);
      return thrown([&] { dispatch<int32_t>(exchange, changed); });
    };
    EXPECT_TRUE(
        has(said([](auto& of) { of.n = 41; }), "41 tokens, but the exchange was made for at most 40"));
    EXPECT_TRUE(has(said([](auto& of) { --of.room; }), "room for 159 rows, but up to 160 may come"));
    EXPECT_TRUE(has(said([](auto& of) { of.alignment = 4; }), "room for 160 rows, but up to 169 may come"));
    EXPECT_TRUE(has(said([](auto& of) { of.padded = true, of.room = 79; }),
                    "room for 79 rows of each expert, but up to 80 may come"));
    EXPECT_TRUE(has(said([](auto& of) { of.alignment = 0; }), "alignment is 0"));
    EXPECT_TRUE(has(said([](auto& of) { of.counts = nullptr; }), "counts is null"));
    EXPECT_TRUE(has(said([](auto& of) { of.n = 1, of.experts = nullptr; }), "experts is null"));
    EXPECT_TRUE(has(said([](auto& of) { of.rows = static_cast<char*>(of.rows) + 8; }),
                    "expected a multiple of 16 bytes"));
    EXPECT_TRUE(
        has(thrown([&] { combine<float>(exchange, {}); }), "the exchange was made for results of bf16"));
    world.barrier();
    call_once(exchange, with, 1, uint64_t(world.rank()));  // nothing was sent, so the exchange still works
  });
}

/// Makes a wrong call at rank 1, resets, and makes right calls. Returns the errors by rank.
template <class Wrong>
std::vector<std::string> after(const Wrong& wrong) {
  const Case with;
  std::vector<std::string> said(2);
  run_local(2, [&](World& world) {
    ExpertExchange exchange(world, options_of(with, DType::bf16));
    call_once(exchange, with, 1, uint64_t(world.rank()));
    Plain of(4, exchange);
    of.call.n = 4;
    world.barrier();  // the mistake must not come into the call before
    try {
      if (world.rank() == 1) wrong(exchange, of.experts);
      dispatch<int32_t>(exchange, of.call);
      combine<bf16>(exchange, {.rows = of.rows.data(), .out = of.tokens.data(), .n = 4});
    } catch (const std::exception& error) {
      said[size_t(world.rank())] = error.what();
    }
    world.reset();
    exchange.reset();
    for (uint64_t again = 2; again < 5; ++again) call_once(exchange, with, again, uint64_t(world.rank()));
  });
  return said;
}

TEST(ExpertFaults, AWrongExpertIsAnErrorOfAllRanks) {
  for (const int32_t wrong : {6, -2}) {
    const auto said = after([wrong](auto&, std::vector<int32_t>& experts) { experts[5] = wrong; });
    const std::string wanted = fmt::format("token 2 names expert {}, expected -1 for none, or 0 to 5", wrong);
    for (const std::string& text : said) EXPECT_TRUE(has(text, wanted)) << text;
  }
  const auto said = after([](auto&, std::vector<int32_t>& experts) { experts[2] = experts[3] = 1; });
  for (const std::string& text : said) EXPECT_TRUE(has(text, "token 1 names expert 1 twice")) << text;
}

TEST(ExpertFaults, ASecondCombineIsAnErrorOfAllRanks) {
  const auto said = after([](ExpertExchange& exchange, auto&) {
    std::vector<bf16> rows(exchange.max_rows() * 16), tokens(40 * 16);
    combine<bf16>(exchange, {.rows = rows.data(), .out = tokens.data(), .n = 0});
  });
  for (const std::string& text : said) EXPECT_TRUE(has(text, "combine() follows a dispatch(), once")) << text;
}

TEST(ExpertFaults, ARankThatNeverCallsIsReported) {
  LocalOptions options;
  options.seed = 1;  // finds a deadlock without waiting for a time limit
  std::string said;
  run_local(
      2,
      [&](World& world) {
        const Case with;
        ExpertExchange exchange(world, options_of(with, DType::bf16));
        if (world.rank() == 0) said = thrown([&] { call_once(exchange, with, 1, 0); });
      },
      options);
  EXPECT_TRUE(has(said, "dispatch of tokens to experts")) << said;
}

/// Makes calls until rank 1 kills itself, some time after the third call, and goes on without it.
std::string calls_until_one_dies(World world, const Case& with, std::chrono::microseconds later) {
  const auto rank = uint64_t(world.rank());
  ExpertExchange exchange(world, options_of(with, DType::bf16));
  std::jthread death;
  const std::string said = thrown([&] {
    for (uint64_t call = 0;; ++call) {
      call_once(exchange, with, call % 50, rank);
      if (testing::Test::HasFailure()) throw std::logic_error("wrong rows before the death");
      if (rank != 1 || call != 2) continue;
      death = std::jthread([later] {
        std::this_thread::sleep_for(later);
        ::kill(getpid(), SIGKILL);
      });
    }
  });
  if (!has(said, "peer_lost: rank 1 (pid ")) return said;
  World rest = world.survivors();
  ExpertExchange masked = exchange.over(rest);
  if (masked.lost() != std::vector<int>{1}) return "not rank 1 is lost";
  for (uint64_t call = 0; call < 10; ++call) call_once(masked, with, call, rank, {1});
  return testing::Test::HasFailure() ? "wrong rows" : "good";
}

TEST(ExpertFaults, KilledProcessesAreNamedAndMasked) {
  for (int round = 0; round < 12 && !HasFailure(); ++round) {
    Case with;
    with.ranks = 3;
    with.packet_tokens = round % 2 == 0 ? 0 : 40;
    const std::string address = chorale::test::fresh_address();
    chorale::test::Processes ranks(3, [&](int rank) -> std::string {
      World world = World::join(address, rank, 3, {.workers = 2, .timeout = 60s});
      return calls_until_one_dies(std::move(world), with, std::chrono::microseconds(round * 397));
    });
    for (const int rank : {0, 2}) EXPECT_EQ(ranks.said(rank), "good") << "round " << round;
  }
}

TEST(ExpertFaults, AWorldOfOtherRanksIsRefused) {
  // Both ranks of the second world bring an exchange in which they are rank 0.
  std::vector<World> alone;
  for (int rank = 0; rank < 2; ++rank) alone.push_back(std::move(World::local(1).front()));
  run_local(2, [&](World& world) {
    ExpertExchange exchange(alone[size_t(world.rank())], options_of(Case{}, DType::bf16));
    const std::string said = thrown([&] { exchange.over(world); });
    EXPECT_TRUE(has(said, "rank 1 is not a rank of this exchange that is left")) << said;
  });
}

TEST(ExpertFaults, TwoRanksAreLostOneAfterTheOther) {
  std::vector<World> worlds = World::local(4);
  Case with;
  with.ranks = 4;
  const auto body = [&](int rank) {
    World world = std::move(worlds[size_t(rank)]);
    ExpertExchange exchange(world, options_of(with, DType::bf16));
    call_once(exchange, with, 1, uint64_t(rank));
    world.barrier();
    if (rank == 1) return;
    World rest = world.survivors();
    ExpertExchange three = exchange.over(rest);
    EXPECT_EQ(three.lost(), std::vector<int>{1});
    call_once(three, with, 2, uint64_t(rank), {1});
    rest.barrier();
    if (rank == 2) return;
    World two = rest.survivors();
    // Either exchange knows which ranks are left.
    for (const ExpertExchange* of : {&exchange, &three}) {
      ExpertExchange last = of->over(two);
      EXPECT_EQ(last.lost(), (std::vector<int>{1, 2}));
      call_once(last, with, 3, uint64_t(rank), {1, 2});
      two.barrier();
    }
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.emplace_back(body, rank);
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace chorale::fused
