// Checks for `chorale doctor PLAN` that the CPU has the memory that all ranks of a plan need.

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "chorale/config.hpp"
#include "chorale/error.hpp"
#include "chorale/needs.hpp"
#include "tools/command.hpp"
#include "tools/doctor/examination.hpp"
#include "tools/words.hpp"

namespace chorale::tools {
namespace {

uint64_t add(uint64_t one, uint64_t other) { return one > UINT64_MAX - other ? UINT64_MAX : one + other; }

uint64_t times(uint64_t one, uint64_t number) {
  return number && one > UINT64_MAX / number ? UINT64_MAX : one * number;
}

/// Compares the memory that the ranks need with the memory that is available.
/// \param needed  one rank's memory, in words
/// \param bytes   the memory of all ranks
void compare_memory(Examination& found, const std::string& needed, uint64_t bytes,
                    const std::string& remedy) {
  const uint64_t available = available_host_memory();
  const std::string text =
      fmt::format("{}, {} in all; available here: {}", needed, format_bytes(bytes), mebibytes(available));
  found.judge(bytes <= available, "bytes", text, remedy);
  struct statvfs room;
  const uint64_t free =
      ::statvfs("/dev/shm", &room) == 0 ? uint64_t(room.f_bavail) * room.f_frsize : uint64_t(0);
  if (bytes > free) {
    found.note("/dev/shm", "too little for ranks as processes; free: " + mebibytes(free));
  } else {
    found.pass("/dev/shm", "enough for ranks as processes; free: " + mebibytes(free));
  }
}

std::string on_the_cpu(uint32_t ranks) { return count(ranks, "rank") + " on the CPU"; }

}  // namespace

void examine_plan_on_cpu(Examination& found, const Plan& plan, uint64_t bytes, DType dtype) {
  examine_requirements(found, plan);
  found.pass("ranks", on_the_cpu(plan.ranks()));
  RankNeeds most;
  uint64_t all = 0;
  try {
    for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
      const RankNeeds needs = needs_of(plan, rank, bytes, dtype, Config::load().round_scratch);
      const uint64_t own = plan.inplace ? std::max(needs.input_bytes, needs.output_bytes)
                                        : add(needs.input_bytes, needs.output_bytes);
      all = add(all, add(own, needs.scratch_bytes));
      most.input_bytes = std::max(most.input_bytes, needs.input_bytes);
      most.output_bytes = std::max(most.output_bytes, needs.output_bytes);
      most.scratch_bytes = std::max(most.scratch_bytes, needs.scratch_bytes);
      most.thread_blocks = std::max(most.thread_blocks, needs.thread_blocks);
    }
  } catch (const UsageError& error) {
    return found.fail("message", error.what(), "another --bytes or --dtype");
  }
  found.pass("message", fmt::format("{} bytes of {}", format_bytes(bytes), dtype_name(dtype)));
  found.pass("thread blocks", count(most.thread_blocks, "block") + " per rank, which share the cores");
  found.pass("scratch", scratch_words(plan, Config::load().round_scratch));
  compare_memory(found,
                 fmt::format("{} input, {} output, {} scratch per rank", format_bytes(most.input_bytes),
                             format_bytes(most.output_bytes), format_bytes(most.scratch_bytes)),
                 all, "smaller messages, or a plan with less scratch");
  found.more("scratch of a rank: " + scratch_words(plan, Config::load().round_scratch));
}

void examine_schedule_on_cpu(Examination& found, const Plan& plan, const schedule::Concrete& made) {
  found.pass("plan", plan.name + ": host schedule of " + count(made.ranks, "rank"));
  found.pass("ranks", on_the_cpu(made.ranks));
  found.pass("streams", count(made.streams.size(), "stream"));
  uint64_t bytes = 0;
  for (const schedule::ConcreteTensor& tensor : made.tensors) bytes = add(bytes, tensor.bytes);
  compare_memory(found, format_bytes(bytes) + " of tensors per rank", times(bytes, made.ranks),
                 "smaller parameters");
}

}  // namespace chorale::tools
