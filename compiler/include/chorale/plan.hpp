#pragma once
/// \file
/// A plan says what every thread block of every rank does in one collective. Its structures match the JSON of
/// MSCCL++ level by level, so that nothing is lost when a plan is read and written. Plan::extension and
/// Op::at hold what that schema lacks.
///
/// A *chunk* is the unit of a plan. Its size in bytes is known only when the plan is bound to a message size.

#if __cplusplus < 202002L
#error "Chorale on the host needs C++20 (-std=c++20, also of nvcc); <chorale/device.hpp> alone needs C++17"
#endif

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/channel.hpp"
#include "chorale/codec.hpp"
#include "chorale/identity.hpp"
#include "chorale/source_line.hpp"
#include "chorale/types.hpp"

namespace chorale {

namespace schedule {
struct Schedule;
}

/// Names the buffers of a rank: the input and output of the application, and scratch, which belongs to the
/// plan.
enum class BufferKind : uint8_t { input, output, scratch };
/// Holds the words of diagnostics and the letters of plan files, by BufferKind.
inline constexpr std::string_view buffer_names[] = {"input", "output", "scratch"};
inline constexpr std::string_view buffer_letters[] = {"i", "o", "s"};

/// Tells MSCCL++ whether a plan sends packets (LL). Chorale's executor ignores it, because the operations
/// tell.
enum class Protocol : uint8_t { Simple, LL };

/// Holds the words of plan files, by ReduceOp.
inline constexpr std::string_view reduce_op_names[] = {
#define CHORALE_REDUCE_OP(name) #name,
#include "chorale/types.def"
};

/// Names an operation. Each opcode is a row of ops.def.
enum class Opcode : uint8_t {
#define CHORALE_OP(name, mnemonic, summary, fields) name,
#include "chorale/ops.def"
};

inline constexpr size_t opcode_count =
#define CHORALE_OP(name, mnemonic, summary, fields) 1 +
#include "chorale/ops.def"
    0;

/// Says what an operation does with an operand, or what else it carries. "Here" means the rank that runs the
/// operation.
enum class Role : uint8_t {
  // operands
  Read,               ///< plain chunks, read here
  Write,              ///< plain chunks, overwritten here
  PacketRead,         ///< packets in scratch here, which it waits for
  PacketWrite,        ///< packets in scratch, written here
  RemoteRead,         ///< plain chunks, read at a peer
  RemoteWrite,        ///< plain chunks, overwritten at a peer
  RemotePacketWrite,  ///< packets in a peer's scratch, written
  SwitchRead,         ///< the region of every member of a switch channel, read
  SwitchWrite,        ///< the region of every member, overwritten
  SwitchPacketWrite,  ///< packets in the scratch of every member, written
  // attributes
  Via,           ///< the channel type: Op::via
  Channels,      ///< channel ids (thread-block-local) that only identify the peer
  PortChannels,  ///< as Channels, written for port channels only
  Post,          ///< channel ids; their semaphores are posted at the peer, with release
  PostRelaxed,   ///< as Post, without any order
  Await,         ///< channel ids awaited here, with acquire
  AwaitRelaxed,  ///< as Await, without any order
  Drain,         ///< port channels; it waits for their transfers
  Acquire,       ///< semaphore ids taken here
  Release,       ///< semaphore ids given here
  Arrive,        ///< barrier id and the number of participating thread blocks
  Reduce,        ///< the reduction operator: Op::reduce_op
  Sliced,        ///< may be shared by the blocks of a thread block group: Op::group_*
  Loop,          ///< the unit and the chunks of a pipeline, and the number of operations in its body
};

/// Returns whether a role stands for an operand. Other roles are attributes.
constexpr bool is_operand(Role role) { return role <= Role::SwitchPacketWrite; }
/// Returns whether the operand is a thread-block-local reference to a remote buffer.
constexpr bool is_remote(Role role) {
  return role == Role::RemoteRead || role == Role::RemoteWrite || role == Role::RemotePacketWrite;
}
/// Returns whether the operand is a thread-block-local reference to a switch channel.
constexpr bool is_switched(Role role) {
  return role == Role::SwitchRead || role == Role::SwitchWrite || role == Role::SwitchPacketWrite;
}
constexpr bool is_packet(Role role) {
  return role == Role::PacketRead || role == Role::PacketWrite || role == Role::RemotePacketWrite ||
         role == Role::SwitchPacketWrite;
}
constexpr bool is_write(Role role) {
  return role == Role::Write || role == Role::PacketWrite || role == Role::RemoteWrite ||
         role == Role::RemotePacketWrite || role == Role::SwitchWrite || role == Role::SwitchPacketWrite;
}

/// Describes one field of a row. Code that walks the table uses it.
struct Field {
  Role role;
  std::string_view name;  ///< name of the operand; empty for attributes
  bool in_dst;            ///< true: the operand is in "dst_buff"; false: in "src_buff"
  bool many;              ///< true: one or more operands; false: exactly one
};

/// Describes one row of the op table.
struct OpInfo {
  std::string_view name, mnemonic, summary;
  std::span<const Field> fields;

  bool has(Role role) const {
    for (const Field& field : fields)
      if (field.role == role) return true;
    return false;
  }
};

const OpInfo& info(Opcode);
std::span<const OpInfo> op_table();  ///< by Opcode
/// Returns the opcode of a mnemonic or of a name; -1 if there is none.
int find_opcode(std::string_view mnemonic_or_name);

/// Names `size` chunks from chunk `index` of a buffer. The role of the operand says how `ref` names the
/// buffer. It is a BufferKind (local), a position in ThreadBlock::remote_buffers of the op's channel type
/// (remote), or a position in the block's list of switch channels (switched).
struct Operand {
  uint64_t index = 0, size = 0;
  uint32_t ref = 0;
  uint32_t extra : 24 = 0;  ///< unknown JSON keys, as Op::extra
  uint32_t codec : 8 = 0;   ///< a position in Extension::codecs plus one; 0: the elements are plain
  bool operator==(const Operand&) const = default;
};
static_assert(sizeof(Operand) == 24);
/// Operand::extra is at most this.
inline constexpr uint32_t most_operand_extra = (uint32_t{1} << 24) - 1;
/// A plan has at most this many codecs.
inline constexpr size_t most_codecs = 255;

/// Says where the compiler must synchronise the threads around a control operation (signal, wait, flush,
/// semaphores). The data_sync rewrite replaces it by `nop` operations.
enum class SyncType : uint8_t { none = 0, before = 1, after = 2, both = 3 };

/// Holds one operation. Its operands and ids are ranges in the pools of its ThreadBlock: sources first, then
/// destinations, each in the order of the table. It is small because a program for hundreds of ranks records
/// millions of them.
struct Op {
  Opcode code = Opcode::nop;
  ChannelType via = ChannelType::none;
  ReduceOp reduce_op = ReduceOp::sum;
  SyncType sync = SyncType::none;
  uint32_t first_operand = 0;
  uint32_t first_id = 0;
  uint16_t sources = 0, destinations = 0;
  uint16_t ids = 0;           ///< channel, semaphore or barrier ids
  uint16_t participants = 0;  ///< barrier: number of thread blocks
  uint16_t group_index = 0;   ///< position of this block in its group
  uint16_t group_size = 0;    ///< blocks in the group; 0: not grouped
  uint32_t body = 0;          ///< pipeline: number of operations after this one that are its body
  uint32_t unit_bytes = 0;    ///< pipeline: bytes of one turn
  uint32_t chunks = 0;        ///< pipeline: chunks that all turns cover
  /// Holds the author's line: a position in Plan::source plus one, or joined_calls plus a position in
  /// Plan::joined. 0 means that it is unknown.
  uint32_t at = 0;
  uint32_t extra = 0;  ///< unknown JSON keys: position in Plan::extras plus one
};
static_assert(sizeof(Op) == 44);

/// Marks an Op::at that is a position in Plan::joined.
inline constexpr uint32_t joined_calls = uint32_t{1} << 31;

/// Describes one of the author's calls that the compiler joined into one operation. Each list of the
/// operation has the entries of the first call, then those of the second, and so on.
struct JoinedCall {
  uint32_t at = 0;                                  ///< author's line: position in Plan::source plus one
  uint32_t sources = 0, destinations = 0, ids = 0;  ///< numbers of entries
  auto operator<=>(const JoinedCall&) const = default;
};

/// Each list of an operation (sources, destinations or ids) has at most this many entries.
inline constexpr uint32_t max_list = UINT16_MAX;

/// Lists the channels of one type that a thread block uses, in order of first use. Ids are positions in the
/// rank's channels of that type (Gpu::channel_count).
struct ChannelRefs {
  ChannelType type;
  std::vector<uint32_t> ids;
  uint32_t extra = 0;
};

/// Lists the remote buffers that a thread block reaches through one channel type. Ids are positions in
/// Gpu::remote_buffers.
struct RemoteBufferRefs {
  ChannelType type;
  std::vector<uint32_t> ids;
  uint32_t extra = 0;
};

/// Says what one thread block does. It holds the operations in order, and the local lists by which they name
/// channels and remote buffers.
struct ThreadBlock {
  uint32_t id = 0;
  std::vector<Op> ops;
  std::vector<Operand> operands;  ///< the pool of Op::first_operand
  std::vector<uint32_t> ids;      ///< the pool of Op::first_id
  std::vector<ChannelRefs> channels;
  std::vector<RemoteBufferRefs> remote_buffers;
  uint32_t extra = 0;

  std::span<const Operand> sources(const Op& op) const {
    return {operands.data() + op.first_operand, op.sources};
  }
  std::span<const Operand> dests(const Op& op) const {
    return {operands.data() + op.first_operand + op.sources, op.destinations};
  }
  std::span<Operand> sources(const Op& op) { return {operands.data() + op.first_operand, op.sources}; }
  std::span<Operand> dests(const Op& op) {
    return {operands.data() + op.first_operand + op.sources, op.destinations};
  }
  std::span<const uint32_t> op_ids(const Op& op) const { return {ids.data() + op.first_id, op.ids}; }
  /// Returns the block's list of channels of a type; null if it uses none.
  const ChannelRefs* channels_of(ChannelType type) const { return of_type(channels, type); }
  const RemoteBufferRefs* remote_buffers_of(ChannelType type) const { return of_type(remote_buffers, type); }

 private:
  template <class Refs>
  static const Refs* of_type(const std::vector<Refs>& list, ChannelType type) {
    for (const Refs& refs : list) {
      if (refs.type == type) return &refs;
    }
    return nullptr;
  }
};

/// Holds one record of "channels". A type with signals has one peer per channel. A switched type has one rank
/// group per channel.
struct ChannelRecord {
  ChannelType type = ChannelType::memory;
  std::vector<uint32_t> connected_to;  ///< if has_signals(type)
  /// Holds the author's line of each channel: a position in Plan::channel_source plus one. 0, or no entry,
  /// means that it is unknown. Plan files do not have it.
  std::vector<uint32_t> at = {};
  BufferKind buffer = BufferKind::input;           ///< if is_switched(type)
  std::vector<std::vector<uint32_t>> rank_groups;  ///< if is_switched(type)
  uint32_t extra = 0;
};

/// Names a buffer of a peer that operations of this rank access.
struct RemoteBuffer {
  uint32_t rank = 0;
  BufferKind buffer = BufferKind::input;
  std::vector<ChannelType> access;  ///< the channel types used, in order of first use
  uint32_t extra = 0;
};

/// Holds the members and the buffer of a switch channel.
struct SwitchGroup {
  BufferKind buffer;
  const std::vector<uint32_t>* ranks;
};

/// Says what one rank does.
struct Gpu {
  uint32_t id = 0;
  uint64_t chunks[3] = {0, 0, 0};  ///< by BufferKind
  std::vector<ThreadBlock> threadblocks;
  std::vector<ChannelRecord> channels;
  std::vector<RemoteBuffer> remote_buffers;
  std::vector<int64_t> semaphores;  ///< initial values
  uint32_t extra = 0;

  /// Returns the number of channels of a type in this rank, over all its records.
  uint32_t channel_count(ChannelType) const;
  /// Returns the number of this rank's signals. Each channel of signalled_types has one.
  uint32_t signal_count() const { return first_signal(ChannelType::none); }
  /// Returns the position of a type's first channel among all channels with signals. For `none` it returns
  /// their number.
  uint32_t first_signal(ChannelType) const;
  /// Returns the peer of channel `id` of a type with signals; -1 if there is no such channel.
  int64_t peer(ChannelType type, uint32_t id) const {
    size_t left = id;
    for (const ChannelRecord& record : channels) {
      if (record.type != type) continue;
      if (left < record.connected_to.size()) return record.connected_to[left];
      left -= record.connected_to.size();
    }
    return -1;
  }
  /// Returns switch channel `id`; .ranks is null if there is no such channel.
  SwitchGroup switch_group(uint32_t id) const;
};

/// Names chunk `chunk` of the input of rank `rank`.
struct Contribution {
  uint32_t rank = 0;
  uint64_t chunk = 0;
  bool operator==(const Contribution&) const = default;
};

/// Returns whether a word of plan files names an operation or a channel type that MSCCL++ lacks.
constexpr bool is_extension(std::string_view word) { return word.starts_with("chorale_"); }
/// Returns "combine_packets" for "chorale_combine_packets".
constexpr std::string_view name_of_extension(std::string_view word) {
  return word.substr(std::string_view("chorale_").size());
}

/// Lists what Extension::requirements may hold: four features that MSCCL++ ignores, and the operations and
/// channel types that it lacks.
inline constexpr auto known_requirements = [] {
  constexpr std::string_view ignored[] = {"reduce_op", "flush", "switch_reduce", "codecs"};
  constexpr std::string_view words[] = {
#define CHORALE_OP(name, mnemonic, summary, fields) mnemonic,
#include "chorale/ops.def"
#define CHORALE_CHANNEL(name, word, ends, mover) word,
#include "chorale/channels.def"
  };
  // chorale_require says only that something else is required.
  constexpr auto required = [](std::string_view word) {
    return is_extension(word) && word != "chorale_require";
  };
  constexpr auto count =
      std::size(ignored) + size_t(std::count_if(std::begin(words), std::end(words), required));
  std::array<std::string_view, count> all;
  auto next = std::copy(std::begin(ignored), std::end(ignored), all.begin());
  for (const std::string_view word : words)
    if (required(word)) *next++ = name_of_extension(word);
  return all;
}();

/// Holds the data that MSCCL++'s schema lacks. In plan files it is the top-level key "chorale".
struct Extension {
  std::vector<std::string> requirements;  ///< "requires": features that MSCCL++ lacks
  uint32_t root = 0;                      ///< broadcast: the rank that sends; reduce: the rank that receives
  /// Holds the number of logical chunks per rank before replication, for custom and test collectives. 0 means
  /// the number of chunks of the buffer.
  uint64_t input_segments = 0, output_segments = 0;
  /// Lists, for custom collectives, the input segments whose sum each output segment holds. It is indexed as
  /// post[rank][output segment]. One entry means a copy, and none leaves the segment undefined. All numbers
  /// are of segments, not of replicated chunks.
  std::vector<std::vector<std::vector<Contribution>>> post;
  /// If true, thread blocks may compete for semaphores and channels. The proofs then cover only a bounded
  /// number of orders.
  bool bounded_proof = false;
  std::vector<Codec> codecs;  ///< the codecs of operands, to which Operand::codec refers
  std::string verified;       ///< the certificate of the proofs, as JSON text; empty: none
  /// Holds the host schedule, if there is one. The thread blocks then belong to the plans that it launches.
  std::shared_ptr<const schedule::Schedule> schedule;
  uint32_t extra = 0;  ///< unknown keys, as Op::extra
};

/// Holds a collective for all ranks. docs/plan-format.md says what each member may hold.
struct Plan {
  std::string name;
  std::string collective;  ///< "allreduce" ...; "custom" and "test" for others
  Protocol protocol = Protocol::Simple;
  bool inplace = false;                    ///< input and output are one memory
  bool reuse_resources = false;            ///< MSCCL++: turns of a pipeline share scratch; ignored here
  bool use_double_scratch_buffer = false;  ///< launches alternate between two copies of plain scratch
  std::vector<Gpu> gpus;                   ///< by rank
  uint64_t threads_per_block = 1024;       ///< a multiple of 32, at most 1024
  uint64_t buffer_alignment = 16;          ///< bytes; chunks begin at multiples of it; a power of two
  uint64_t min_message_size = 0, max_message_size = UINT64_MAX;  ///< bytes, counted as in Arguments
  Extension extension;
  std::vector<SourceLine> source;               ///< authors' lines, to which Op::at refers
  std::vector<std::vector<JoinedCall>> joined;  ///< calls of joined operations; not in plan files
  std::vector<SourceLine> channel_source;       ///< authors' lines of ChannelRecord::at; not in plan files
  std::vector<std::string> extras;              ///< unknown keys, as the inside of a JSON object
  uint32_t extra = 0;                           ///< unknown keys of the top level, as Op::extra
  /// Is set if the plan was loaded for this rank only. The other ranks then have no thread blocks here.
  std::optional<uint32_t> only_rank;
  uint64_t digest = 0;  ///< with only_rank: a hash of the bytes that it was read from
  Identity identity;    ///< number of this object; a copy gets a new one

  uint32_t ranks() const { return uint32_t(gpus.size()); }
  /// Returns the thread blocks of the rank that has the most.
  uint32_t thread_blocks() const;
  /// Returns the calls that the compiler joined into an operation; empty if the operation is one call.
  std::span<const JoinedCall> calls_of(const Op& op) const {
    const size_t position = op.at & ~joined_calls;
    if (op.at < joined_calls || position >= joined.size()) return {};
    return joined[position];
  }
  /// Returns the position of an operation's line in `source`, plus one; 0 if unknown. Of several calls, the
  /// first one counts.
  uint32_t first_at(const Op& op) const {
    const std::span<const JoinedCall> calls = calls_of(op);
    return calls.empty() ? op.at : calls.front().at;
  }
  /// Returns the author's line of an operation, or of the first of its calls; its number is 0 if unknown.
  SourceLine line_of(const Op& op) const {
    const uint32_t at = first_at(op);
    return at ? source[at - 1] : SourceLine{};
  }
};

/// Says into how many segments each buffer of a message is cut. Segments have equal sizes. A buffer with one
/// part per rank has one segment per rank. Each segment has (chunks of the buffer) / (its segments) chunks,
/// all of one size except the last.
struct Segmentation {
  uint64_t input = 1, output = 1;  ///< number of segments of each buffer
};
/// Returns the numbers of segments of input and output. Standard collectives take them from collectives.def.
/// For other collectives every logical chunk is a segment.
Segmentation segmentation(const Plan&);

/// Appends an operation to a thread block, and returns it. The reference is valid until the next operation is
/// appended. The DSL, the reader and tests build plans with it. Each list has at most max_list entries.
Op& append(ThreadBlock&, Opcode, std::span<const Operand> sources, std::span<const Operand> dests,
           std::span<const uint32_t> ids = {});

}  // namespace chorale
