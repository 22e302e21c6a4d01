#pragma once
/// \file
/// Makes, from a plan and a message, the image that one rank's blocks run from.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/layout.hpp"
#include "chorale/scratch.hpp"
#include "image.hpp"

namespace chorale::lowering {

/// image::Buffer::kind: the BufferKinds, scratch for plain chunks, and scratch for packets.
constexpr uint32_t packet_kind = 3;

/// Owns the arrays that an image::Image points to.
struct BoundImage {
  std::vector<image::Record> records;
  std::vector<image::Place> places;
  std::vector<uint32_t> ids;
  std::vector<image::Block> blocks;
  std::vector<image::Buffer> buffers;  ///< the first four are this rank's, by kind; bases are not set
  std::vector<image::Switch> switches;
  std::vector<uint32_t> members;
  std::vector<image::Channel> channels;
  std::vector<uint64_t> semaphores;  ///< initial values
  uint32_t barriers = 0;
  uint32_t memory_channels = 0;  ///< how many of `channels` have no proxy; these come first
  uint64_t alignment = 16;
  bool uses_port = false;

  image::Image view() const;
};

/// The sizes of a rank's scratch. Every rank computes them for every other.
struct ScratchBytes {
  uint64_t plain_bank = 0, packet_bank = 0;
  uint32_t plain_banks = 1;

  uint64_t plain() const { return plain_banks * plain_bank; }
  uint64_t packets() const { return 2 * packet_bank; }
};
ScratchBytes scratch_bytes(const ScratchUse& of_rank, const Layout&);

/// Returns the one operator of the plan's reductions; none if it has no reduction.
/// \param what_for  the replacement, named in the error
/// \throws UsageError if the plan has several operators
std::optional<ReduceOp> only_operator(const Plan&, const std::string& what_for);

/// Builds the image of one rank.
/// \throws UsageError that names the operation, if it is out of bounds or has no form on its channel type
BoundImage build_image(const Plan&, uint32_t rank, const Layout&, DType, std::optional<ReduceOp> replacement);
/// \param use  scratch_use() of the plan
BoundImage build_image(const Plan&, const std::vector<ScratchUse>& use, uint32_t rank, const Layout&, DType,
                       std::optional<ReduceOp> replacement);

/// A plan bound to one call on one rank.
struct BoundPlan {
  Layout layout;
  std::vector<ScratchUse> scratch;  ///< by rank
  BoundImage image;
  uint32_t average_over = 0;  ///< the number by which the result is divided at the end; 0: it is not divided
};
/// Checks the numbers that bindings of other languages pass on unchecked.
/// \param op  as in bind_plan()
/// \throws UsageError for a number that names no enumerator
void check_numbers(DType, PacketForm, int32_t op);

/// Binds a plan to one call on one rank.
/// \param op             a ReduceOp that replaces the plan's, or -1
/// \param round_scratch  bytes of scratch by which a long message is cut into rounds, see in_rounds()
/// \throws UsageError as layout_of() and build_image() do, and for a plan that cannot be reduced by `op`
BoundPlan bind_plan(const Plan&, uint32_t rank, uint64_t bytes, DType, PacketForm, int32_t op,
                    uint64_t round_scratch = 0);

}  // namespace chorale::lowering
