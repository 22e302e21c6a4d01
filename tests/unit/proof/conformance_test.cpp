// These tests compare the steps that the proof assumes for an operation with those of run() in semantics.hpp.
// run() works on a machine that only records the requests: the bytes, who accesses them, and the order around
// them. Operands, slices and turns are random.

#include <ostream>
#include <random>
#include <set>

#include "chorale/device/engine.hpp"
#include "compiler/plan/roles.hpp"
#include "compiler/proof/execution/memory.hpp"
#include "executor/lowering/bind.hpp"
#include "executor/lowering/recording.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale::proof {
namespace {

using Kind = SymbolicStep::Kind;

/// Identifies bytes of a rank's memory: space as in Memory, and packets by their payload.
struct Bytes {
  uint32_t space = 0;
  bool write = false, packets = false;
  uint64_t begin = 0, end = 0;

  bool operator==(const Bytes&) const = default;
};

std::ostream& operator<<(std::ostream& to, const Bytes& of) {
  return to << (of.write ? " writes " : " reads ") << (of.packets ? "packets " : "") << of.space << "["
            << of.begin << ":" << of.end << "]";
}

struct Done {
  Kind kind = Kind::sync;
  bool relaxed = false, posts = false, combines = false;
  ReduceOp reduce_op = ReduceOp::sum;
  uint32_t id = 0, participants = 0;
  std::vector<Bytes> bytes;

  bool operator==(const Done&) const = default;
};

std::ostream& operator<<(std::ostream& to, const Done& of) {
  to << "kind " << int(of.kind) << " relaxed " << of.relaxed << " posts " << of.posts << " combines "
     << of.combines << " id " << of.id << " of " << of.participants;
  for (const Bytes& one : of.bytes) to << one;
  return to;
}

constexpr uint64_t chunk_bytes = 192;  // two units of 96, each of two or three slices of whole 16 bytes
constexpr uint64_t unit = 96;
constexpr uint64_t base_bytes = uint64_t(1) << 32;

/// Returns an address in memory that does not exist; the address identifies its owner.
char* base_of(uint32_t rank, uint32_t kind) {
  return reinterpret_cast<char*>((rank * spaces_per_rank + kind + 1) * base_bytes);
}

class WritingMachine : public lowering::Recording {
 public:
  explicit WritingMachine(const lowering::BoundImage& image)
      : Recording(image.view(), PacketForm::ll8, false) {}

  std::vector<Done> done;

  char* base(uint32_t buffer) const {
    return base_of(image_.buffers[buffer].rank, image_.buffers[buffer].kind);
  }
  /// Packets of other forms carry the same data.
  template <class F>
  void with_packet(const F& f) const {
    f(TypeTag<LL8>{});
  }

  template <class Source, class Sink>
  void move(uint64_t bytes, const Source& source, const Sink& sink) {
    Done& one = add(Kind::move);
    touch(one, source, bytes, false);
    touch(one, sink, bytes, true);
  }
  template <class First, class Other, class Sink>
  void reduce(ReduceOp op, uint64_t bytes, const First& first, const Other* others, uint32_t n,
              const Sink& sink) {
    Done& one = add(Kind::move);
    one.combines = true;
    one.reduce_op = op;
    touch(one, first, bytes, false);
    for (uint32_t other = 0; other < n; ++other) touch(one, others[other], bytes, false);
    touch(one, sink, bytes, true);
  }
  template <class Sink>
  void reduce_members(ReduceOp op, uint64_t bytes, const pieces::Members& from, const Sink& sink) {
    Done& one = add(Kind::move);
    one.combines = true;
    one.reduce_op = op;
    touch(one, MultiStore{from.data, from.n, from.offset, from.valid}, bytes, false);
    touch(one, sink, bytes, true);
  }

  void repeat(uint32_t pipeline) { run_turns(*this, pipeline, 0, image_.records[pipeline].turns); }

  void sync() { add(Kind::sync); }
  void post(const op::Ids& channels, bool relaxed) {
    if (!relaxed) sync();
    each(Kind::post, channels, relaxed);
  }
  void await(const op::Ids& channels, bool relaxed) {
    each(Kind::await, channels, relaxed);
    sync();
  }
  void drain(const op::Ids& channels) {
    each(Kind::drain, channels, false);
    sync();
  }
  void acquire(const op::Ids& semaphores) {
    for (uint32_t at = 0; at < semaphores.n; ++at) add(Kind::acquire).id = semaphores.first[at];
    sync();
  }
  void release(const op::Ids& semaphores) {
    sync();
    for (uint32_t at = 0; at < semaphores.n; ++at) add(Kind::release).id = semaphores.first[at];
  }
  void arrive(uint32_t id, uint32_t participants) {
    sync();
    Done& one = add(Kind::arrive);
    one.id = id;
    one.participants = participants;
    sync();
  }
  void push(Action, const op::Ids& channels) {
    for (uint32_t at = 0; at < channels.n; ++at) {
      sync();
      Done& one = add(Kind::push);
      one.id = local(channels.first[at]);
      one.posts = true;
    }
  }
  template <Role S, Role D>
  void push(Action action, const op::Ids& channels, const op::Slice& slice, const op::Places<S>& src,
            const op::Places<D>& dst) {
    for (uint32_t at = 0; at < channels.n; ++at) {
      sync();
      const uint32_t from = src.n == 1 ? 0 : at;
      const image::Range part = range(src[from].bytes, slice);
      Done& one = add(Kind::push);
      one.id = local(channels.first[at]);
      one.posts = has(action, Action::signal);
      touch(one, src, from, part, has(action, Action::copy_packets), false);
      touch(one, dst, at, part, !has(action, Action::copy), true);
    }
  }

 private:
  Done& add(Kind kind) {
    done.emplace_back();
    done.back().kind = kind;
    return done.back();
  }
  /// Returns the number among the channels of its type. two_ranks() has two of each type.
  static uint32_t local(uint32_t channel) { return channel % 2; }
  void each(Kind kind, const op::Ids& channels, bool relaxed) {
    for (uint32_t at = 0; at < channels.n; ++at) {
      Done& one = add(kind);
      one.id = local(channels.first[at]);
      one.relaxed = relaxed;
    }
  }

  static void add(Done& one, const void* data, uint64_t bytes, bool write, bool packets) {
    const uint64_t address = reinterpret_cast<uint64_t>(data), at = address % base_bytes;
    const uint64_t begin = packets ? at / packet_slots<LL8> * packet_payload<LL8> : at;
    one.bytes.push_back({uint32_t(address / base_bytes) - 1, write, packets, begin, begin + bytes});
  }
  static void touch(Done& one, const Mem& of, uint64_t bytes, bool write) {
    EXPECT_GE(of.valid, bytes);
    add(one, of.data, bytes, write, false);
  }
  static void touch(Done& one, const Packets<LL8>& of, uint64_t bytes, bool write) {
    add(one, of.slots, bytes, write, true);
  }
  static void touch(Done& one, const MultiStore& of, uint64_t bytes, bool write) {
    for (uint32_t member = 0; member < of.n; ++member) touch(one, of.member(member), bytes, write);
  }
  template <class T>
  static void touch(Done& one, const Many<T>& of, uint64_t bytes, bool write) {
    for (uint32_t sink = 0; sink < of.n; ++sink) touch(one, of.sinks[sink], bytes, write);
  }
  template <class A, class B>
  static void touch(Done& one, const Tee<A, B>& of, uint64_t bytes, bool write) {
    touch(one, of.a, bytes, write);
    touch(one, of.b, bytes, write);
  }
  template <Role R>
  void touch(Done& one, const op::Places<R>& of, uint32_t place, const image::Range& part, bool packets,
             bool write) {
    if (packets)
      touch(one, pieces::packets<LL8>(*this, of, place, part.first), part.end - part.first, write);
    else
      touch(one, pieces::memory(*this, of, place, part.first), part.end - part.first, write);
  }
};

/// Returns the steps of rank 0's first thread block, in bytes.
std::vector<Done> declared(const Plan& plan) {
  const Message message = list_messages(plan)[plan.gpus[0].threadblocks[0].ops[0].body ? 1 : 0];
  const Memory memory(plan, message, false);
  EXPECT_TRUE(memory.fits());
  const uint64_t atom = chunk_bytes / message.chunk;
  std::vector<Done> done;
  SymbolicSteps steps;
  uint64_t limit = max_executed;
  for_each_turn(message, plan.gpus[0].threadblocks[0], limit, [&](const Op& op, const Turn& turn) {
    list_steps(plan, plan.gpus[0], plan.gpus[0].threadblocks[0], op, steps);
    for (const SymbolicStep& step : steps.steps) {
      Done& one = done.emplace_back();
      one = {step.kind,      step.relaxed, step.posts,        step.combines,
             step.reduce_op, step.id,      step.participants, {}};
      for (uint32_t at = 0; at < step.sources + step.dests; ++at) {
        const Access& access = steps.accesses[step.first + at];
        EXPECT_EQ(access.write, at >= step.sources);
        const Range range = memory.range(access, op, turn);
        one.bytes.push_back(
            {range.space, access.write, access.packets, range.begin * atom, range.end * atom});
      }
    }
  });
  return done;
}

/// Leaves out steps without effect: a second synchronisation, and a move of no bytes in a turn.
std::vector<Done> effective(const std::vector<Done>& all) {
  std::vector<Done> kept;
  for (const Done& one : all) {
    const bool data = one.kind == Kind::move || (one.kind == Kind::push && !one.bytes.empty());
    if (data && one.bytes[0].begin == one.bytes[0].end && !one.posts) continue;
    if (one.kind == Kind::sync && !kept.empty() && kept.back().kind == Kind::sync) continue;
    kept.push_back(one);
    // Its operands may begin after their own ends. A signal is sent anyway.
    if (data && one.bytes[0].begin == one.bytes[0].end) kept.back().bytes.clear();
  }
  return kept;
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t below(uint32_t n) { return uint32_t(engine_() % n); }

 private:
  std::mt19937 engine_;
};

std::vector<Operand> operands(Random& random, std::span<const Field> fields, uint32_t many, uint64_t size) {
  std::vector<Operand> list;
  for (const Field& field : fields) {
    for (uint32_t n = field.many ? many : 1; n; --n) {
      uint32_t ref = is_packet(field.role) ? 2 : random.below(3);
      if (is_switched(field.role)) ref = is_packet(field.role) ? 1 : random.below(2);
      list.push_back({random.below(uint32_t(8 - size + 1)), size, ref});
    }
  }
  return list;
}

/// Returns the channel types that an operation has forms for.
std::vector<ChannelType> types(const Shape& row) {
  if (!row.has(Role::Via)) return {ChannelType::none};
  const bool port = row.has(Role::PortChannels) || row.has_any(post_roles) || row.has_any(await_roles);
  std::vector<ChannelType> fit;
  for (const ChannelType type : all_channel_types) {
    const bool fits = row.has_any(switched_roles) ? is_switched(type)
                      : row.has(Role::Drain)      ? has_proxy(type)
                                                  : is_direct(type) || (port && has_proxy(type));
    if (fits) fit.push_back(type);
  }
  return fit;
}

/// Rank 0's first thread block runs one operation, in a pipeline or not.
Plan one_op(Opcode code, ChannelType via, bool in_pipeline, Random& random) {
  Plan plan = two_ranks();
  ThreadBlock& block = plan.gpus[0].threadblocks[0];
  const Shape& row = shape(code);
  const uint64_t size = 1 + random.below(3);
  const uint32_t many = 1 + random.below(3);
  if (in_pipeline) {
    Op& pipeline = append(block, Opcode::pipeline, {}, {});
    pipeline.unit_bytes = unit;
    pipeline.chunks = size + random.below(2);
    pipeline.body = 1;
  }
  const auto sources = operands(random, row.sources, many, size),
             dests = operands(random, row.dests, many, size);
  std::vector<uint32_t> ids;
  if (id_kind(row, via) == IdKind::channel) {
    for (size_t n = dests.empty() ? many : dests.size(); n; --n) ids.push_back(random.below(2));
  } else if (id_kind(row, via) == IdKind::semaphore) {
    for (uint32_t n = many; n; --n) ids.push_back(random.below(3));
  } else if (id_kind(row, via) == IdKind::barrier) {
    ids = {0};
  }
  Op& op = append(block, code, sources, dests, ids);
  op.via = via;
  op.reduce_op = row.has(Role::Reduce) && random.below(2) ? ReduceOp::max : ReduceOp::sum;
  op.participants = row.has(Role::Arrive) ? 1 + random.below(2) : 0;
  if (row.has(Role::Sliced) && random.below(2)) {
    op.group_size = 2 + random.below(2);
    op.group_index = random.below(op.group_size);
  }
  return plan;
}

TEST(ProofConformance, EveryOperationTouchesWhatItDeclares) {
  Random random(1);
  std::set<Opcode> seen;
  for (size_t code = 0; code < op_table().size(); ++code) {
    if (Opcode(code) == Opcode::pipeline) continue;  // the operations of its body do all of its work
    for (const ChannelType via : types(shape(Opcode(code)))) {
      for (int round = 0; round < 60; ++round) {
        const bool in_pipeline = round % 3 == 0 && !shape(Opcode(code)).has(Role::Arrive);
        const Plan plan = one_op(Opcode(code), via, in_pipeline, random);
        const auto layout = layout_of(plan, 8 * chunk_bytes, DType::i32);
        ASSERT_EQ(layout.chunk_bytes, chunk_bytes);
        const lowering::BoundImage image = lowering::build_image(plan, 0, layout, DType::i32, {});
        WritingMachine machine(image);
        run_block(machine, 0);
        ASSERT_EQ(effective(machine.done), effective(declared(plan)))
            << words(plan) << " " << text(plan, in_pipeline ? 1 : 0);
        seen.insert(Opcode(code));
      }
    }
  }
  EXPECT_EQ(seen.size() + 1, op_table().size());
}

}  // namespace
}  // namespace chorale::proof
