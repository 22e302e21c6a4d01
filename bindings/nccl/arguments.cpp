#include "arguments.hpp"

#include <fmt/format.h>

#include <utility>

namespace chorale::nccl {
namespace {

Checked wrong(std::string sentence) { return Verdict{ncclInvalidArgument, std::move(sentence)}; }

Checked rank_within(int ranks, int rank) {
  if (ranks >= 1 && rank >= 0 && rank < ranks) return std::nullopt;
  return wrong(fmt::format("rank {} of {} ranks does not exist", rank, ranks));
}

}  // namespace

Checked first_null(std::string_view names, const void* const* pointers, size_t count) {
  for (size_t place = 0; place < count; ++place) {
    const size_t comma = names.find(',');
    if (!pointers[place]) return wrong(fmt::format("{} is null", names.substr(0, comma)));
    names.remove_prefix(comma == names.npos ? names.size() : names.find_first_not_of(", ", comma));
  }
  return std::nullopt;
}

namespace check {

Checked rank_of_new(const ncclComm_t*, int ranks, const ncclUniqueId&, int rank) {
  return rank_within(ranks, rank);
}

Checked rank_of_new(const ncclComm_t*, int ranks, const ncclUniqueId&, int rank, const ncclConfig_t*) {
  return rank_within(ranks, rank);
}

Checked rank_of_new(const ncclComm_t*, int ranks, int rank, int, const ncclUniqueId*, const ncclConfig_t*) {
  return rank_within(ranks, rank);
}

Checked number_of_devices(const ncclComm_t*, int devices, const int*) {
  if (devices >= 0) return std::nullopt;
  return wrong(fmt::format("{} devices are not possible", devices));
}

Checked no_communicator(ncclComm_t comm) {
  if (comm) return std::nullopt;
  return Verdict{ncclSuccess, ""};
}

Checked operator_to_destroy(ncclRedOp_t op, ncclComm_t comm) {
  if (op < 0) return wrong(fmt::format("operator {} does not exist", int(op)));
  if (op < ncclNumOps)
    return wrong(fmt::format("operator {} is one of NCCL's own, which no program destroys", int(op)));
  if (!comm) return wrong("comm is null");
  return std::nullopt;
}

}  // namespace check
}  // namespace chorale::nccl
