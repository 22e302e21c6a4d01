/// \file
/// Tests ranks that have loaded only their own part of a plan.

#include <fstream>
#include <sstream>

#include "tests/cpu/harness.hpp"

namespace chorale::test {
namespace {

std::string shipped_text(const std::string& name) {
  std::ifstream file(source_dir() / "plans/shipped" / (name + ".json"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string cbor(const std::string& json) {
  std::ostringstream bytes;
  write_cbor(read(json), bytes);
  return bytes.str();
}

/// Runs each rank with the result of `load` for it. Returns the first error on any rank.
template <class Load>
std::string run_parts(int ranks, Load&& load) {
  std::vector<std::string> wrong(static_cast<size_t>(ranks));
  run_local(ranks, [&](World& world) {
    const Plan plan = load(uint32_t(world.rank()));
    Executor executor(world);
    for (const uint64_t bytes : {uint64_t(4) * 8 * 250, uint64_t(4) * 8})
      wrong[size_t(world.rank())] += run_rank(world, executor, plan, {.bytes = bytes});
  });
  for (const std::string& one : wrong) {
    if (!one.empty()) return one;
  }
  return "";
}

TEST(OneRank, RunsOnItsPart) {
  for (const std::string name : {"allreduce_two_shot_4", "allgather_ring_4", "alltoall_packets_4"}) {
    const std::string json = shipped_text(name), binary = cbor(json);
    EXPECT_EQ(run_parts(4, [&](uint32_t rank) { return read(json, rank); }), "") << name;
    EXPECT_EQ(run_parts(4, [&](uint32_t rank) { return read(binary, rank); }), "") << name;
  }
}

TEST(OneRank, PartsAreOfOneFile) {
  const std::string one = shipped_text("allreduce_ring_2");
  std::string other = one;
  other.replace(other.rfind("\"at\":"), 5, "\"at\": ");  // the same plan in different bytes
  for (const bool whole : {true, false}) {
    try {
      run_parts(2, [&](uint32_t rank) {
        return rank == 0 ? read(one, 0) : whole ? read(one) : read(other, 1);
      });
      FAIL() << "no error";
    } catch (const RunError& error) {
      EXPECT_NE(std::string(error.what()).find("disagree on the plan"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace chorale::test
