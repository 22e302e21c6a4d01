#pragma once
/// \file
/// From a plan and a message to the image that one rank's blocks run from.

#include <optional>
#include <vector>

#include "chorale/layout.hpp"
#include "chorale/scratch.hpp"
#include "image.hpp"

namespace chorale::interpreter {

/// image::Buffer::kind: the BufferKinds, scratch for plain chunks, and scratch for packets.
constexpr uint32_t packet_kind = 3;

/// What image::Image points to.
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
  uint32_t memory_channels = 0;  ///< so many of `channels` are memory channels
  uint32_t widest = 1;
  uint64_t alignment = 16;
  bool uses_port = false;

  image::Image view() const;
};

/// What a rank's scratch takes; every rank computes it for every other.
struct ScratchBytes {
  uint64_t plain_bank = 0, packet_bank = 0;
  uint32_t plain_banks = 1;

  uint64_t plain() const { return plain_banks * plain_bank; }
  uint64_t packets() const { return 2 * packet_bank; }
};
ScratchBytes scratch_bytes(const ScratchUse& of_rank, const Layout&);

/// The one operator of the plan's reductions; none if it has no reduction.
/// \throws UsageError if there are several: "replaces" says what wanted to know
std::optional<ReduceOp> only_operator(const Plan&, const std::string& what_for);

/// \throws UsageError naming the operation, for what is out of bounds, or has no form on its channel type
BoundImage build_image(const Plan&, uint32_t rank, const Layout&, DType, std::optional<ReduceOp> replacement);
/// \param use  scratch_use() of the plan
BoundImage build_image(const Plan&, const std::vector<ScratchUse>& use, uint32_t rank, const Layout&, DType,
                       std::optional<ReduceOp> replacement);

/// What a plan is for one call on one rank.
struct BoundPlan {
  Layout layout;
  std::vector<ScratchUse> scratch;  ///< by rank
  BoundImage image;
  uint32_t average_over = 0;  ///< by how many ranks the result is divided at the end; 0: not at all
};
/// Numbers of other languages come here as they are. \param op  as bind_plan() has it
/// \throws UsageError for a number that names none
void check_numbers(DType, PacketForm, int32_t op);

/// \param op             a ReduceOp that replaces the plan's, or -1
/// \param round_scratch  bytes of scratch by which a long message is cut into rounds, see in_rounds()
/// \throws UsageError as layout_of() and build_image(), and for a plan that cannot be reduced by `op`
BoundPlan bind_plan(const Plan&, uint32_t rank, uint64_t bytes, DType, PacketForm, int32_t op,
                    uint64_t round_scratch = 0);

}  // namespace chorale::interpreter
