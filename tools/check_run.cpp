#include "tools/check_run.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "chorale/collective.hpp"
#include "tools/command.hpp"

namespace chorale::tools {
namespace {

constexpr std::byte guard{0x5a};

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::optional<Mismatch> compare_with(Device& device, const std::byte* found, const Pattern& wanted) {
  std::mutex mutex;
  Mismatch all;
  device.look(found, wanted.bytes(), [&](const std::byte* piece, uint64_t first, uint64_t bytes) {
    const std::optional<Mismatch> wrong = wanted.compare(first, piece, bytes);
    if (!wrong) return;
    const std::lock_guard hold(mutex);
    all.add(*wrong);
  });
  if (!all.elements) return {};
  return all;
}

}  // namespace

Buffers place(std::byte* first, std::byte* second, const std::string& collective, bool in_place,
              uint32_t rank, MessageSizes sizes) {
  if (!in_place) return {first, second, second + sizes.output, sizes, false};
  const CollectiveInfo& info = collective_info(collective);
  const uint64_t in_at = info.input_is_part() ? rank * sizes.input : 0;
  const uint64_t out_at = info.output_is_part() ? rank * sizes.output : 0;
  return {first + in_at, first + out_at, first + std::max(sizes.input, sizes.output), sizes, true};
}

void CheckRun::fill(uint64_t turn) {
  device_.set(buffers_.out, int(0xa5 ^ (turn & 0x0f)), buffers_.sizes.output);
  const Pattern input = oracle_.input(rank_, turn);
  device_.fill(buffers_.in, input.bytes(),
               [&](std::byte* piece, uint64_t first, uint64_t bytes) { input.copy(first, piece, bytes); });
  device_.set(buffers_.end, int(guard), guard_bytes);
}

Findings CheckRun::compare(uint64_t turn) {
  const std::string who = "rank " + std::to_string(rank_);
  const std::string when = turn == 0 ? "" : " in run " + std::to_string(turn + 1);
  std::optional<Mismatch> nearest;
  for (const Pattern& wanted : oracle_.outputs(rank_, turn)) {
    const std::optional<Mismatch> found = compare_with(device_, buffers_.out, wanted);
    if (!nearest || !found || found->elements < nearest->elements) nearest = found;
    if (!found) break;
  }
  if (nearest) {
    return {nearest->elements, who + ", output element " + std::to_string(nearest->index) + when + ": got " +
                                   number(nearest->got) + ", expected " + number(nearest->expected) + " (" +
                                   std::to_string(nearest->elements) + " of its " +
                                   count(buffers_.sizes.output / dtype_size(dtype_), "element") +
                                   (nearest->elements == 1 ? " is wrong)" : " are wrong)")};
  }
  bool intact = true;
  device_.look(buffers_.end, guard_bytes, [&](const std::byte* piece, uint64_t, uint64_t bytes) {
    intact = std::all_of(piece, piece + bytes, [](std::byte byte) { return byte == guard; });
  });
  if (!intact) return {1, who + " was written past the end of its buffer" + when};
  // A plan that does not define its result may write into its input.
  if (!buffers_.in_place && oracle_.knows_result() &&
      compare_with(device_, buffers_.in, oracle_.input(rank_, turn))) {
    return {1, who + ": its input was changed by a run out of place" + when};
  }
  return {};
}

}  // namespace chorale::tools
