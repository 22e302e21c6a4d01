// These tests check in which order plans add up, and which add up in the order of the ranks.

#include "chorale/reduction_order.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "compiler/proof/values/value.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale::proof {
namespace {

/// Makes sums of parts of inputs, rounded when they are in brackets.
struct Sums {
  Values values;
  uint32_t of(uint32_t rank, uint64_t at = 0) { return values.origin({rank, at}); }
  uint32_t of(std::vector<uint32_t> addends) {
    uint32_t sum = addends.at(0);
    for (size_t k = 1; k < addends.size(); ++k) sum = values.combine(sum, addends[k], ReduceOp::sum);
    return sum;
  }
  uint32_t rounded(std::vector<uint32_t> addends) {
    const uint32_t sum = of(std::move(addends));
    values.round(sum);
    return sum;
  }
};

TEST(ReductionOrder, InWords) {
  Sums sums;
  const auto ranks = [&](const std::vector<uint32_t>& list) {
    std::vector<uint32_t> addends;
    for (const uint32_t rank : list) addends.push_back(sums.of(rank));
    return addends;
  };
  const auto words = [&](uint32_t value) { return sums.values.order_words(value); };
  EXPECT_EQ(words(sums.of(3)), "3");
  EXPECT_EQ(words(sums.rounded(ranks({0, 1, 2}))), "0 + 1 + 2");
  EXPECT_EQ(words(sums.rounded(ranks({1, 0, 2}))), "0 + 1 + 2") << "two may be swapped";
  EXPECT_EQ(words(sums.rounded(ranks({1, 2, 0}))), "1 + 2 + 0") << "and three not";
  EXPECT_EQ(words(sums.rounded(ranks({0, 1, 2, 3, 4}))), "0 + ... + 4");
  EXPECT_EQ(words(sums.rounded(ranks({4, 5, 6, 7, 0, 1, 2, 3}))), "4 + ... + 7 + 0 + ... + 3");
  EXPECT_EQ(words(sums.rounded(ranks({1, 0, 2, 3, 4, 9}))), "0 + ... + 4 + 9");
  EXPECT_EQ(words(sums.rounded({sums.rounded(ranks({0, 1})), sums.of(2)})), "(0 + 1) + 2");
  EXPECT_EQ(words(sums.rounded({sums.rounded(ranks({2, 3})), sums.rounded(ranks({0, 1}))})),
            "(0 + 1) + (2 + 3)");
  EXPECT_EQ(
      words(sums.rounded({sums.of(0), sums.of(1), sums.rounded({sums.of(2), sums.rounded(ranks({3, 4}))})})),
      "0 + 1 + ((3 + 4) + 2)");
}

TEST(ReductionOrder, EqualWordsAreEqualOrders) {
  std::mt19937 random(1);
  std::map<std::string, uint64_t> known;
  std::map<uint64_t, std::string> words_of;
  Sums sums;
  const auto some = [&](size_t n) { return random() % n; };
  for (int turn = 0; turn < 20000; ++turn) {
    std::vector<uint32_t> parts;
    for (uint32_t rank = 0; rank < 4; ++rank) parts.push_back(sums.of(rank, some(3)));
    std::shuffle(parts.begin(), parts.end(), random);
    while (parts.size() > 1) {  // the last few are rounded, unless they are all
      const size_t n = 2 + some(parts.size() - 1);
      const std::vector<uint32_t> last(parts.end() - ptrdiff_t(n), parts.end());
      parts.resize(parts.size() - n);
      parts.insert(parts.begin() + ptrdiff_t(some(parts.size() + 1)), sums.rounded(last));
    }
    const uint64_t order = sums.values.order(parts[0]);
    const std::string words = sums.values.order_words(parts[0]);
    EXPECT_EQ(known.try_emplace(words, order).first->second, order) << words;
    EXPECT_EQ(words_of.try_emplace(order, words).first->second, words);
  }
  // 4 ranks: 12 orders of four at once; of two brackets 3; with one bracket of two, 6 times 3 orders of
  // three; of three, 3 orders of each of 4, and with a bracket inside 3 of each.
  EXPECT_EQ(known.size(), 12u + 3 + 6 * 3 + 4 * 3 + 4 * 3);
}

Plan shipped(const std::string& name) { return load(CHORALE_SOURCE_DIR "/plans/shipped/" + name + ".json"); }

TEST(ReductionOrder, OfShippedPlans) {
  EXPECT_EQ(reduction_order(shipped("allreduce_one_shot_8")), "0 + ... + 7");
  EXPECT_EQ(reduction_order(shipped("allreduce_two_level_4")), "(0 + 1) + (2 + 3)");
  EXPECT_EQ(reduction_order(shipped("allreduce_ring_4")), std::nullopt);
  EXPECT_EQ(reduction_order(shipped("allreduce_ring_2")), "0 + 1");
  EXPECT_EQ(reduction_order(shipped("allgather_direct_4")), "");
  EXPECT_TRUE(in_rank_order(shipped("allreduce_one_shot_8")));
  EXPECT_FALSE(in_rank_order(shipped("allreduce_two_level_4")));
  EXPECT_FALSE(in_rank_order(shipped("allreduce_ring_4")));
  EXPECT_TRUE(in_rank_order(shipped("reducescatter_direct_2")));
  EXPECT_TRUE(in_rank_order(shipped("allgather_direct_4")));
}

TEST(ReductionOrder, OfDeepSums) {
  constexpr uint32_t ranks = 100000;  // one operation each may add them
  Sums sums;
  uint32_t nested = sums.of(0), flat = sums.of(0);
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    nested = sums.rounded({nested, sums.of(rank)});
    flat = sums.values.combine(flat, sums.of(rank), ReduceOp::sum);
  }
  const std::string words = sums.values.order_words(nested);
  EXPECT_EQ(words.substr(ranks - 3, 14), "(0 + 1) + 2) +") << "after one bracket less than there are sums";
  EXPECT_EQ(sums.values.order_words(flat), "0 + ... + 99999");
}

/// Adds the input of one rank to itself repeatedly.
Plan doubled(uint32_t times) {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  for (uint32_t rank = 0; rank < 2; ++rank) {
    plan.gpus[rank].chunks[0] = plan.gpus[rank].chunks[1] = 1;
    add(block(plan, rank), Opcode::reduce, {in(0), in(0)}, {out(0)});
    for (uint32_t time = 0; time < times; ++time)
      add(block(plan, rank), Opcode::nop), add(block(plan, rank), Opcode::reduce, {out(0), out(0)}, {out(0)});
  }
  return plan;
}

TEST(ReductionOrder, OfAWrongPlanIsNotTold) {
  // The order would be 2^40 addends in words.
  const Proof proof = prove_plan(doubled(40), {}, true);
  EXPECT_FALSE(proof.findings.empty());
  EXPECT_EQ(proof.facts.order, "");
  EXPECT_EQ(reduction_order(doubled(40)), std::nullopt);
}

TEST(ReductionOrder, OfWhatIsNotProvedIsNotTold) {
  // A test promises nothing, and neither does a custom collective without `post`.
  for (const char* const collective : {"test", "custom"}) {
    Plan plan = two_ranks();
    plan.collective = collective;
    EXPECT_TRUE(in_rank_order(plan)) << "nothing is added up";
    add(block(plan), Opcode::reduce, {in(1), in(0)}, {out(0)});
    EXPECT_EQ(reduction_order(plan), std::nullopt) << collective;
    EXPECT_FALSE(in_rank_order(plan)) << collective;
    const std::string certified = certificate(plan, prove_plan(plan, {}, true).facts);
    EXPECT_NE(certified.find(R"("reduction_order":null)"), std::string::npos) << certified;
  }
  const Plan schedule = shipped("schedules/matmul_rs");
  EXPECT_EQ(reduction_order(schedule), std::nullopt);
  EXPECT_FALSE(in_rank_order(schedule));
}

TEST(ReductionOrder, OfPlansThatNobodyChecked) {
  Plan plan = shipped("allreduce_ring_2");
  plan.gpus[0].remote_buffers[0].rank = 55;
  EXPECT_EQ(reduction_order(plan), std::nullopt);
  EXPECT_FALSE(in_rank_order(plan));
  plan = shipped("allreduce_one_shot_2");
  plan.gpus[0].threadblocks[0].operands.back().size = 1;
  EXPECT_FALSE(in_rank_order(plan));
}

TEST(ReductionOrder, OfPlansThatAddNothingUpNeedsNoProof) {
  Plan plan = shipped("allgather_ring_2");
  plan.gpus[0].threadblocks[0].ops.clear();
  EXPECT_EQ(reduction_order(plan), std::nullopt) << "it is wrong";
  EXPECT_TRUE(in_rank_order(plan));
}

TEST(ReductionOrder, OfOneRanksPartIsTheCertificates) {
  Plan plan = shipped("allreduce_one_shot_4");
  EXPECT_THROW(in_rank_order(read(write(plan), 1)), std::invalid_argument);
  plan.extension.verified = certificate(plan, prove_plan(plan, {}, true).facts);
  EXPECT_EQ(reduction_order(read(write(plan), 1)), "0 + ... + 3");
  EXPECT_TRUE(in_rank_order(read(write(plan), 1)));
}

TEST(ReductionOrder, IsWhatACertificateSaysIfThatHolds) {
  Plan plan = shipped("allreduce_one_shot_4");
  const ProofFacts facts = prove_plan(plan, {}, true).facts;
  plan.extension.verified = certificate(plan, facts);
  EXPECT_NE(plan.extension.verified.find(R"("reduction_order":"0 + ... + 3")"), std::string::npos);
  ProofFacts other = facts;
  other.order = "3 + 2 + 1 + 0";  // it is not proved again
  plan.extension.verified = certificate(plan, other);
  EXPECT_EQ(reduction_order(plan), "3 + 2 + 1 + 0");
  other.other_order = "output[0:1] of rank 1 is not";
  plan.extension.verified = certificate(plan, other);
  EXPECT_EQ(reduction_order(plan), std::nullopt);
  nlohmann::ordered_json odd = nlohmann::ordered_json::parse(certificate(plan, facts));
  for (const nlohmann::ordered_json& word : {nlohmann::ordered_json(7), nlohmann::ordered_json::object()}) {
    odd["reduction_order"] = word;
    plan.extension.verified = odd.dump();
    EXPECT_EQ(reduction_order(plan), std::nullopt) << word;
  }
  odd.erase("reduction_order");  // like older ones
  plan.extension.verified = odd.dump();
  EXPECT_EQ(reduction_order(plan), "0 + ... + 3");
  plan.extension.verified = R"({"hash":"0"})";
  EXPECT_EQ(reduction_order(plan), "0 + ... + 3");
  plan.gpus[1].threadblocks[0].ops.pop_back();
  EXPECT_EQ(reduction_order(plan), std::nullopt) << "it is wrong";
}

}  // namespace
}  // namespace chorale::proof
