// Tests which steps of a program may run at the same time.

#include "executor/lowering/steps.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "executor/lowering/far_place.hpp"

namespace chorale::lowering {
namespace {

using remote::FarPlace;

constexpr uint64_t bytes = 64;

ProgramPlace at_peer(uint32_t rank, uint32_t buffer, uint64_t tags = 0) {
  return {reinterpret_cast<uint64_t>(FarPlace::base(rank, buffer)) | tags, 0, bytes};
}
ProgramPlace here(uint64_t offset) { return {(uint64_t(1) << 30) + offset, 0, bytes}; }

RecordedStep copy(const ProgramPlace& from, const ProgramPlace& to) {
  RecordedStep step;
  step.step.kind = ProgramStepKind::copy;
  step.step.whole = 1;
  step.step.bytes = bytes;
  step.step.plain_sinks = 1;
  step.plain = {from, to};
  return step;
}

uint16_t together(const RecordedStep& one, const RecordedStep& other) {
  return batch_from({one, other}, 0, 2);
}

// A peer may publish one buffer as its input and its output.
TEST(Batches, TakeInputAndOutputOfAPeerForOneBuffer) {
  const RecordedStep writes = copy(here(0), at_peer(1, FarPlace::output)),
                     reads = copy(at_peer(1, FarPlace::input), here(bytes)),
                     reads_in_rounds = copy(at_peer(1, FarPlace::input, ProgramPlace::sliced), here(bytes)),
                     reads_another = copy(at_peer(2, FarPlace::input), here(bytes));
  EXPECT_EQ(together(writes, reads), 1);
  EXPECT_EQ(together(writes, reads_in_rounds), 1);
  EXPECT_EQ(together(writes, reads_another), 2);
  EXPECT_EQ(together(reads, reads_another), 1) << "both write the same place here";
}

}  // namespace
}  // namespace chorale::lowering
