#pragma once
/// \file
/// These functions make the image of one rank, which its blocks run from, out of a plan and a message.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/layout.hpp"
#include "chorale/scratch.hpp"
#include "image.hpp"

namespace chorale::lowering {

/// Names the image::Buffer::kind of scratch for packets. The other kinds are the BufferKinds; scratch there
/// is for plain chunks.
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
  uint32_t memory_channels = 0;  ///< the number of `channels` that have no proxy; these come first
  uint64_t alignment = 16;
  bool uses_port = false;

  image::Image view() const;
};

/// Gives the sizes of a rank's scratch. Every rank computes them for all ranks.
struct ScratchBytes {
  uint64_t plain_bank = 0, packet_bank = 0;
  uint32_t plain_banks = 1;

  uint64_t plain() const { return plain_banks * plain_bank; }
  uint64_t packets() const { return 2 * packet_bank; }
};
ScratchBytes scratch_bytes(const ScratchUse& of_rank, const Layout&);

/// Returns the only operator of the plan's reductions, or none if it has no reduction.
/// \param what_for the replacement, which the error names
/// \throws UsageError if the plan has several operators
std::optional<ReduceOp> only_operator(const Plan&, const std::string& what_for);

/// Builds the image of one rank.
/// \throws UsageError naming the operation, if it is out of bounds or not possible over its channel type
BoundImage build_image(const Plan&, uint32_t rank, const Layout&, DType, std::optional<ReduceOp> replacement);
/// \param use scratch_use() of the plan
BoundImage build_image(const Plan&, const std::vector<ScratchUse>& use, uint32_t rank, const Layout&, DType,
                       std::optional<ReduceOp> replacement);

/// Holds a plan bound to one call on one rank.
struct BoundPlan {
  Layout layout;
  std::vector<ScratchUse> scratch;  ///< by rank
  BoundImage image;
  uint32_t average_over = 0;  ///< the divisor of the result at the end; 0: no division
};
/// Checks the numbers that bindings of other languages pass unchecked.
/// \param op same as in bind_plan()
/// \throws UsageError for a number that names no enumerator
void check_numbers(DType, PacketForm, int32_t op);

/// Binds a plan to one call on one rank.
/// \param use scratch_use() of the plan
/// \param op a ReduceOp that replaces the plan's, or -1
/// \param round_scratch the bytes of scratch to which a long message's rounds are cut, see in_rounds()
/// \param segments_apart see Layout
/// \throws UsageError as layout_of() and build_image() do, and for a plan that cannot be reduced by `op`
BoundPlan bind_plan(const Plan&, const std::vector<ScratchUse>& use, uint32_t rank, uint64_t bytes, DType,
                    PacketForm, int32_t op, uint64_t round_scratch = 0, bool segments_apart = false);
/// Does the same, and computes `use`.
BoundPlan bind_plan(const Plan&, uint32_t rank, uint64_t bytes, DType, PacketForm, int32_t op);

}  // namespace chorale::lowering
