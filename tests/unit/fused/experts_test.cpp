// These tests send tokens to their experts and back.

#include "experts.hpp"

namespace chorale::fused {
namespace {

using namespace fused::test;

/// Returns a case that follows from a number.
Case case_of(uint64_t number) {
  const uint64_t drawn = drawn_from(number + 17);
  const auto of = [&](uint64_t shift, uint64_t least, uint64_t most) {
    return least + (drawn >> shift) % (most - least + 1);
  };
  Case with;
  with.ranks = int(of(0, 1, 4));
  with.experts_per_rank = uint32_t(of(4, 1, 5));
  with.top_k = uint32_t(std::min(of(8, 1, 4), uint64_t(with.ranks) * with.experts_per_rank));
  with.max_tokens = uint32_t(of(12, 1, 24));
  with.hidden = 8 * of(16, 1, 9);
  with.scales = uint32_t(of(20, 0, 1) * of(21, 1, 5));
  with.packet_tokens = uint32_t(of(24, 0, 2) * with.max_tokens / 2);
  with.packet = of(28, 0, 1) == 0 ? PacketForm::ll16 : PacketForm::ll128;
  with.blocks = uint32_t(of(30, 1, 3));
  with.threads = of(34, 0, 1) == 0 ? 1 : 4;
  with.padded = of(36, 0, 2) == 0;
  with.weighs = of(38, 0, 3) != 0;
  with.alignment = uint32_t(of(40, 1, 4));
  if (with.padded) with.alignment = 1;
  if (of(44, 0, 3) == 0) with.room = of(48, 0, 20);
  with.calls = 3;
  return with;
}

TEST(Experts, RowsAndSumsAreThoseOfTheOracle) {
  for (uint64_t number = 0; number < 200 && !HasFailure(); ++number) {
    SCOPED_TRACE(number);
    test_calls(case_of(number), number * 8);
  }
}

TEST(Experts, InAnyOrder) {
  for (uint64_t seed = 0; seed < 1000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Case with = case_of(seed + 5000);
    with.max_tokens = std::min(with.max_tokens, 6u);
    with.packet_tokens = std::min(with.packet_tokens, with.max_tokens);
    with.hidden = 8;
    LocalOptions options;
    options.seed = seed;
    test_calls(with, seed * 8, options);
  }
}

TEST(Experts, DispatchesWithoutCombinesInAnyOrder) {
  // Nothing but the two banks keeps a rank from overwriting packets that its peer has not read.
  for (uint64_t seed = 0; seed < 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Case with;
    with.ranks = 3;
    with.max_tokens = 4;
    with.packet_tokens = seed % 2 == 0 ? 4 : 2;
    with.packet = seed % 4 < 2 ? PacketForm::ll16 : PacketForm::ll128;
    with.blocks = 1;
    with.calls = 6;
    with.combines = false;
    LocalOptions options;
    options.seed = seed;
    test_calls(with, seed * 8, options);
  }
}

TEST(Experts, ManyPieces) {
  // Several pieces of rows per block, from ranks with other numbers of pieces.
  Case with;
  with.ranks = 3;
  with.max_tokens = 400;
  with.calls = 6;
  for (const uint32_t threads : {1u, 8u}) {
    with.threads = threads;
    test_calls(with, 300);
  }
}

TEST(Experts, TypesOfResults) {
  Case with = case_of(3);
  with.ranks = 3;
  for (const uint32_t packet_tokens : {0u, with.max_tokens}) {
    with.packet_tokens = packet_tokens;
    test_calls<float>(with);
    test_calls<f16>(with);
  }
}

TEST(Experts, ATokenMayGoToAllExperts) {
  Case with;
  with.ranks = 4;
  with.top_k = 12;
  with.experts_per_rank = 3;
  test_calls(with, 40);
}

}  // namespace
}  // namespace chorale::fused
