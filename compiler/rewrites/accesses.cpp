#include "accesses.hpp"

#include <cstring>

#include "../resolve.hpp"

namespace chorale {
namespace {

/// Compares a name with one of a length that is known when compiling: this is asked for every access of a
/// plan.
template <size_t N>
bool is(const std::string& name, const char (&wanted)[N]) {
  return name.size() == N - 1 && std::memcmp(name.data(), wanted, N - 1) == 0;
}

/// Gives an access to input or output the coordinates of the memory that holds both, if the plan is in place.
void unite(const Plan& plan, Access& access) {
  if (!plan.inplace || access.buffer == BufferKind::scratch) return;
  if (is(plan.collective, "allgather")) {
    // The input of a rank is its own part of its output.
    if (access.buffer != BufferKind::input) return;
    const uint64_t shift = access.rank * plan.gpus[access.rank].chunks[size_t(BufferKind::input)];
    access.begin += shift;
    access.end += shift;
    access.buffer = BufferKind::output;
  } else if (is(plan.collective, "reducescatter")) {
    // The output of a rank is its own part of its input.
    if (access.buffer != BufferKind::output) return;
    const uint64_t shift = access.rank * plan.gpus[access.rank].chunks[size_t(BufferKind::output)];
    access.begin += shift;
    access.end += shift;
    access.buffer = BufferKind::input;
  } else {
    access.buffer = BufferKind::input;
  }
}

}  // namespace

void list_accesses(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, const Op& op, bool everywhere,
                   std::vector<Access>& out) {
  for_each_place(plan, gpu, block, op,
                 [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                   if (operand.size == 0 || (!everywhere && rank != gpu.id)) return;
                   // Through a channel to itself a rank reaches its own memory as a peer does.
                   if (!everywhere && is_remote(field.role)) return;
                   out.push_back({rank, buffer, is_packet(field.role), is_write(field.role), operand.index,
                                  operand.index + operand.size});
                   unite(plan, out.back());
                 });
}

bool overlap(const Access& left, const Access& right) {
  if (left.rank != right.rank || left.buffer != right.buffer) return false;
  const auto meet = [](uint64_t begin, uint64_t end, uint64_t other_begin, uint64_t other_end) {
    return begin < other_end && other_begin < end;
  };
  if (meet(left.begin, left.end, right.begin, right.end)) return true;
  if (left.packets == right.packets) return false;
  const Access& packets = left.packets ? left : right;
  const Access& plain = left.packets ? right : left;
  return meet(2 * packets.begin, 2 * packets.end, plain.begin, plain.end);
}

}  // namespace chorale
