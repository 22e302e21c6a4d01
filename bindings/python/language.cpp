// This file gives Python the objects and operations of a program in chorale.language. programs.cpp has
// CollectiveProgram, and collectives.cpp the collectives. Names and arguments are those of MSCCL++'s
// mscclpp.language.
//
// Objects of a program can be made in two ways: inside `with program:`, as in MSCCL++, or with the program as
// the first argument, as in C++. Mistakes in calls become findings at the caller's line, as in C++.
// Exceptions are for arguments of another type.

#include "language.hpp"

#include <fmt/format.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "frames.hpp"
#include "objects.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

/// Returns the thread blocks of a call, which names either one of them or a group.
dsl::Block block_of(std::optional<int64_t> tb, const dsl::ThreadBlockGroup* group) {
  if (tb && group)
    throw std::invalid_argument(
        fmt::format("tb={} and tb_group of {} thread blocks exclude each other; leave one of them out", *tb,
                    group->numtb()));
  if (!tb && !group)
    throw std::invalid_argument("neither tb nor tb_group is given; tb=0 names thread block 0");
  return group ? dsl::Block(*group) : dsl::Block(*tb);
}

/// Returns a number of chunks.
/// \throws py::type_error if the object is no integer, or none of 64 bits
int64_t chunks_of(const py::object& number) {
  try {
    return number.cast<int64_t>();
  } catch (const py::cast_error&) {
    throw py::type_error(
        fmt::format("chunks of a buffer are named by integers, such as buffer[0] or buffer[0:2], not {}",
                    py::repr(number).cast<std::string>()));
  }
}

dsl::Chunk chunk_of(const BufferOf& self, const py::object& key) {
  if (!py::isinstance<py::slice>(key)) return self.it[{chunks_of(key), here()}];
  const py::object start = key.attr("start"), stop = key.attr("stop"), step = key.attr("step");
  if (!step.is_none() && chunks_of(step) != 1)
    throw std::invalid_argument(
        fmt::format("a slice of a buffer has consecutive chunks, so its step is 1, not {}", chunks_of(step)));
  return self.it.slice(start.is_none() ? 0 : chunks_of(start),
                       stop.is_none() ? self.it.size() : chunks_of(stop), here());
}

/// Runs the operations that are recorded inside `with LoopIterationContext(...):` in turns.
class Loop {
 public:
  Loop(SharedProgram program, int64_t unit, int64_t num_chunks)
      : program_(std::move(program)), unit_(unit), num_chunks_(num_chunks) {}

  void enter() {
    if (loop_) throw std::runtime_error("this LoopIterationContext is entered already; make another one");
    loop_ = std::make_unique<dsl::LoopIterationContext>(program_->program, unit_, num_chunks_, here());
  }

  void exit(bool failed) {
    if (!failed) return loop_.reset();
    // The context sees an exception that leaves its scope, and then records nothing.
    struct Left {};
    try {
      const std::unique_ptr<dsl::LoopIterationContext> left = std::move(loop_);
      throw Left();
    } catch (const Left&) {
    }
  }

 private:
  SharedProgram program_;
  int64_t unit_, num_chunks_;
  std::unique_ptr<dsl::LoopIterationContext> loop_;
};

template <class Class>
void declare_numbers(Class& of) {
  using Handle = typename Class::type;
  of.def_property_readonly("dst_rank", [](const Handle& self) { return self.it.dst_rank(); })
      .def_property_readonly("src_rank", [](const Handle& self) { return self.it.src_rank(); })
      .def_property_readonly(
          "channel_id", [](const Handle& self) { return self.it.channel_id(); },
          "Position among the channels of this type of the source, in order of creation.");
}

/// Gives methods the earlier names that some of MSCCL++'s own programs still use, such as put_packet.
template <class Class>
void declare_earlier_names(Class& of, std::initializer_list<const char*> names) {
  for (const std::string name : names) of.attr(name.c_str()) = of.attr((name + "s").c_str());
}

using OptionalTb = std::optional<int64_t>;
using OptionalGroup = const dsl::ThreadBlockGroup*;

/// Declares an operation of one or several thread blocks that moves a chunk.
template <class Class, class Kind>
void declare_move(Class& of, const char* name,
                  void (Kind::*call)(dsl::Chunk, dsl::Chunk, dsl::Block, dsl::Here) const,
                  const char* summary) {
  of.def(
      name,
      [call](const Of<Kind>& self, const dsl::Chunk& dst, const dsl::Chunk& src, OptionalTb tb,
             OptionalGroup group) { (self.it.*call)(dst, src, block_of(tb, group), here()); },
      py::arg("dst_chunk"), py::arg("src_chunk"), py::arg("tb") = py::none(),
      py::arg("tb_group") = py::none(), summary);
}

/// Declares an operation of one thread block that moves no data.
template <class Class, class Kind>
void declare_control(Class& of, const char* name, void (Kind::*call)(int64_t, SyncType, dsl::Here) const,
                     const char* summary) {
  of.def(
      name, [call](const Of<Kind>& self, int64_t tb, SyncType sync) { (self.it.*call)(tb, sync, here()); },
      py::arg("tb"), py::arg("data_sync") = SyncType::both, summary);
}

void declare_buffers(py::module_& module) {
  py::class_<dsl::Chunk>(module, "Chunk", "Names `size` chunks of a buffer of a rank, from chunk `index` on.")
      .def(py::init<int64_t, BufferKind, int64_t, int64_t>(), py::arg("rank"), py::arg("buffer"),
           py::arg("index"), py::arg("size"))
      .def(
          "encoded",
          [](const dsl::Chunk& self, const std::string& format, uint32_t block) {
            for (const CodecFormat known : all_codec_formats)
              if (format == codec_format_name(known)) return self.encoded({known, block});
            std::string words;
            for (const CodecFormat known : all_codec_formats)
              words += fmt::format("{}'{}'", words.empty() ? "" : ", ", codec_format_name(known));
            throw py::value_error(fmt::format("format is '{}', but must be one of {}", format, words));
          },
          py::arg("format"), py::arg("block") = 128,
          "Returns the same chunks, with their elements encoded: one byte each, and an f32 scale for each "
          "`block` of\n"
          "them, which is a power of two from 32 to 1024. Raises ValueError for an unknown format.")
      .def_readonly("rank", &dsl::Chunk::rank)
      .def_readonly("buffer", &dsl::Chunk::buffer)
      .def_readonly("index", &dsl::Chunk::index)
      .def_readonly("size", &dsl::Chunk::size)
      .def("__eq__",
           [](const dsl::Chunk& self, const dsl::Chunk& other) {
             return self.rank == other.rank && self.buffer == other.buffer && self.index == other.index &&
                    self.size == other.size && self.codec == other.codec;
           })
      .def("__hash__",
           [](const dsl::Chunk& self) {
             return py::hash(py::make_tuple(self.rank, int(self.buffer), self.index, self.size));
           })
      .def("__repr__", [](const dsl::Chunk& self) {
        return fmt::format("<chorale.language.Chunk {}[{}:{}] of rank {}>", buffer_names[size_t(self.buffer)],
                           self.index, self.index + self.size, self.rank);
      });
  py::class_<BufferOf>(
      module, "BaseBuffer",
      "Names consecutive chunks of one rank's input, output or scratch. buffer[2:4] is two of them, "
      "buffer[2] one, buffer[:] all.")
      .def("__getitem__", &chunk_of, py::arg("key"))
      .def("__len__", [](const BufferOf& self) { return self.it.size(); })
      .def_property_readonly("rank", [](const BufferOf& self) { return self.it.rank(); })
      .def_property_readonly("buffer_type", [](const BufferOf& self) { return self.it.kind(); })
      .def_property_readonly(
          "offset", [](const BufferOf& self) { return self.it.offset(); },
          "First chunk; not 0 for most scratch buffers.")
      .def_property_readonly(
          "size", [](const BufferOf& self) { return self.it.size(); }, "In chunks.")
      .def("__repr__", [](const BufferOf& self) {
        return fmt::format("<chorale.language buffer: {} chunks of {} of rank {}>", self.it.size(),
                           buffer_names[size_t(self.it.kind())], self.it.rank());
      });
  py::class_<ScratchOf, BufferOf> scratch(
      module, "Buffer",
      "Reserves the next `size` chunks (1 to 2^32) of one rank's scratch until the program ends.");
  declare_made<ScratchOf, int64_t, int64_t>(
      scratch, "Buffer",
      [](const SharedProgram& program, int64_t rank, int64_t size) {
        return ScratchOf{{program, dsl::Buffer(program->program, rank, size, here())}};
      },
      py::arg("rank"), py::arg("size"));
  py::class_<dsl::ThreadBlockGroup>(
      module, "ThreadBlockGroup",
      "Names thread blocks that share one operation. Each takes a slice of every operand.")
      .def(py::init([](const std::vector<int64_t>& tb_list) {
             return dsl::ThreadBlockGroup(dsl::NumberList(tb_list), here());
           }),
           py::arg("tb_list"))
      .def_property_readonly("tb_list", &dsl::ThreadBlockGroup::tb_list)
      .def("numtb", &dsl::ThreadBlockGroup::numtb, "Returns the number of thread blocks.")
      .def(
          "get_internal_id",
          [](const dsl::ThreadBlockGroup& self, int64_t tb) {
            for (size_t at = 0; at < self.tb_list().size(); ++at) {
              if (self.tb_list()[at] == tb) return at;
            }
            throw std::invalid_argument(
                fmt::format("thread block {} is not in this group of {} thread blocks", tb, self.numtb()));
          },
          py::arg("tb"), "Returns the position of a thread block in the group.");
}

void declare_rank(py::module_& module) {
  py::class_<RankOf> rank(module, "Rank", "Names one rank of a program. Its calls work on its own memory.");
  declare_made<RankOf, int64_t>(
      rank, "Rank",
      [](const SharedProgram& program, int64_t number) {
        return RankOf{program, dsl::Rank(program->program, number, here())};
      },
      py::arg("rank"));
  // The text of this method names the class above.
  const py::object program = module.attr("CollectiveProgram");
  program.attr("rank") = py::cpp_function(
      [](const SharedProgram& self, int64_t number) {
        return RankOf{self, self->program.rank(number, here())};
      },
      py::name("rank"), py::is_method(program), py::arg("rank"),
      "Returns rank `rank`, as Rank(program, rank) does.");
  rank.def_property_readonly("rank", [](const RankOf& self) { return self.it.rank(); })
      .def(
          "get_input_buffer",
          [](const RankOf& self) {
            return BufferOf{self.program, self.it.get_input_buffer()};
          },
          "Returns the input of this rank. The collective says how many chunks it has.")
      .def(
          "get_output_buffer",
          [](const RankOf& self) {
            return BufferOf{self.program, self.it.get_output_buffer()};
          },
          "Returns the output of this rank. The collective says how many chunks it has.");
  declare_move(rank, "copy", &dsl::Rank::copy, "Copies src_chunk to dst_chunk.");
  declare_move(rank, "copy_packets", &dsl::Rank::copy_packets,
               "Packs src_chunk into packets at dst_chunk, which is in scratch.");
  declare_move(
      rank, "unpack_packets", &dsl::Rank::unpack_packets,
      "Waits for this launch's packets at src_chunk, which is in scratch, and unpacks them to dst_chunk.");
  rank.def(
          "reduce",
          [](const RankOf& self, const dsl::Chunk& src, const std::vector<dsl::Chunk>& others, OptionalTb tb,
             OptionalGroup group, const std::optional<dsl::Chunk>& dst, ReduceOp op,
             bool packet) { self.it.reduce(src, others, block_of(tb, group), dst, op, packet, here()); },
          py::arg("src_chunk"), py::arg("other_chunks"), py::arg("tb") = py::none(),
          py::arg("tb_group") = py::none(), py::arg("dst_chunk") = py::none(),
          py::arg("reduce_op") = ReduceOp::sum, py::arg("packet") = false,
          "Combines src_chunk with each of other_chunks, in this order, and writes the result to dst_chunk, "
          "or to "
          "src_chunk. With packet, the others are packets in scratch, and it waits for them.")
      .def(
          "combine_packets",
          [](const RankOf& self, const dsl::Chunk& dst, const std::vector<dsl::Chunk>& packets, OptionalTb tb,
             OptionalGroup group,
             ReduceOp op) { self.it.combine_packets(dst, packets, block_of(tb, group), op, here()); },
          py::arg("dst_chunk"), py::arg("packets"), py::arg("tb") = py::none(),
          py::arg("tb_group") = py::none(), py::arg("reduce_op") = ReduceOp::sum,
          "Waits for all packets, combines them in this order, and writes the result to dst_chunk. MSCCL++ "
          "lacks it.")
      .def(
          "barrier",
          [](const RankOf& self, const std::vector<int64_t>& tb_list) { self.it.barrier(tb_list, here()); },
          py::arg("tb_list"), "Makes the listed thread blocks wait for each other.");

  declare_earlier_names(rank, {"copy_packet", "unpack_packet"});

  py::class_<SemaphoreOf> semaphore(
      module, "Semaphore",
      "Orders the thread blocks of one rank by a counter. release() adds one. acquire() "
      "takes one, and blocks while the counter is zero.");
  declare_made<SemaphoreOf, int64_t, int64_t>(
      semaphore, "Semaphore",
      [](const SharedProgram& program, int64_t number, int64_t initial_value) {
        return SemaphoreOf{program, dsl::Semaphore(program->program, number, initial_value, here())};
      },
      py::arg("rank"), py::arg("initial_value"));
  semaphore.def_property_readonly("rank", [](const SemaphoreOf& self) { return self.it.rank(); })
      .def_property_readonly("id", [](const SemaphoreOf& self) { return self.it.id(); });
  declare_control(semaphore, "acquire", &dsl::Semaphore::acquire,
                  "Takes one from the counter, and blocks while it is zero. data_sync: see SyncType.");
  declare_control(
      semaphore, "release", &dsl::Semaphore::release,
      "Publishes everything that the block did before, then adds one to the counter. data_sync: see "
      "SyncType.");
}

void declare_channels(py::module_& module) {
  py::class_<MemoryChannelOf> memory(
      module, "MemoryChannel",
      "Leads from src_rank to dst_rank. Thread blocks of src_rank load and store the "
      "peer's memory.");
  declare_made<MemoryChannelOf, int64_t, int64_t>(
      memory, "MemoryChannel",
      [](const SharedProgram& program, int64_t dst, int64_t src) {
        return MemoryChannelOf{program, dsl::MemoryChannel(program->program, dst, src, here())};
      },
      py::arg("dst_rank"), py::arg("src_rank"));
  declare_numbers(memory);
  using Signal = void (dsl::MemoryChannel::*)(int64_t, SyncType, bool, dsl::Here) const;
  const auto signal = [&memory](const char* name, Signal call, const char* summary) {
    memory.def(
        name,
        [call](const MemoryChannelOf& self, int64_t tb, SyncType sync, bool relaxed) {
          (self.it.*call)(tb, sync, relaxed, here());
        },
        py::arg("tb"), py::arg("data_sync") = SyncType::both, py::arg("relaxed") = false, summary);
  };
  signal("signal", &dsl::MemoryChannel::signal,
         "Publishes everything that the block did before, then ends one wait of the peer. data_sync: see "
         "SyncType. With relaxed=True it publishes nothing: the peer learns that the block has come so far, "
         "and that its earlier reads are over, but may not see its writes. That takes less time.");
  signal("wait", &dsl::MemoryChannel::wait,
         "Blocks until the peer has signalled once more. data_sync: see SyncType. With relaxed=True later "
         "operations may not see what the peer wrote before its signal.");
  declare_move(memory, "get", &dsl::MemoryChannel::get, "Copies src_chunk at the peer to dst_chunk here.");
  declare_move(
      memory, "put", &dsl::MemoryChannel::put,
      "Copies src_chunk here to dst_chunk at the peer. The peer may read it only after a later signal().");
  declare_move(memory, "put_packets", &dsl::MemoryChannel::put_packets,
               "Packs src_chunk here into packets at dst_chunk, in the peer's scratch.");
  constexpr const char* forwards =
      "Waits for this launch's packets at src_chunk, in scratch here, and forwards them to dst_chunk, in the "
      "peer's scratch.";
  declare_move(memory, "read_put_packets", &dsl::MemoryChannel::read_put_packets, forwards);
  memory.def(
      "reduce",
      [](const MemoryChannelOf& self, const dsl::Chunk& src, const std::vector<dsl::Chunk>& remote,
         OptionalTb tb, OptionalGroup group, const std::optional<dsl::Chunk>& dst,
         ReduceOp op) { self.it.reduce(src, remote, block_of(tb, group), dst, op, here()); },
      py::arg("local_src_chunk"), py::arg("remote_src_chunks"), py::arg("tb") = py::none(),
      py::arg("tb_group") = py::none(), py::arg("local_dst_chunk") = py::none(),
      py::arg("reduce_op") = ReduceOp::sum,
      "Reads remote_src_chunks at the peer, combines local_src_chunk with each of them in this order, "
      "and writes the "
      "result to local_dst_chunk, or to local_src_chunk.");

  py::class_<PortChannelOf> port(
      module, "PortChannel",
      "Leads from src_rank to dst_rank. A proxy does the transfers, which may use a network.");
  declare_made<PortChannelOf, int64_t, int64_t>(
      port, "PortChannel",
      [](const SharedProgram& program, int64_t dst, int64_t src) {
        return PortChannelOf{program, dsl::PortChannel(program->program, dst, src, here())};
      },
      py::arg("dst_rank"), py::arg("src_rank"));
  declare_numbers(port);
  declare_control(port, "signal", &dsl::PortChannel::signal,
                  "Posts the peer's semaphore after all transfers that were pushed before.");
  declare_control(port, "wait", &dsl::PortChannel::wait, "Blocks until the peer has signalled once more.");
  declare_control(port, "flush", &dsl::PortChannel::flush,
                  "Blocks until the sources of all transfers have been read.");
  using Put = void (dsl::PortChannel::*)(dsl::Chunk, dsl::Chunk, int64_t, dsl::Here) const;
  const auto put = [&port](const char* name, Put call, const char* summary) {
    port.def(
        name,
        [call](const PortChannelOf& self, const dsl::Chunk& dst, const dsl::Chunk& src, int64_t tb) {
          (self.it.*call)(dst, src, tb, here());
        },
        py::arg("dst_chunk"), py::arg("src_chunk"), py::arg("tb"), summary);
  };
  put("put", &dsl::PortChannel::put, "Pushes a transfer of src_chunk here to dst_chunk at the peer.");
  put("put_with_signal", &dsl::PortChannel::put_with_signal, "Does put(), then signals after the data.");
  put("put_with_signal_and_flush", &dsl::PortChannel::put_with_signal_and_flush,
      "Does put_with_signal(), then flush().");
  put("put_packets", &dsl::PortChannel::put_packets,
      "Packs src_chunk here into packets at dst_chunk, in the peer's scratch.");
  declare_move(port, "read_put_packets", &dsl::PortChannel::read_put_packets, forwards);

  declare_earlier_names(memory, {"put_packet", "read_put_packet"});
  declare_earlier_names(port, {"put_packet", "read_put_packet"});

  py::class_<SwitchChannelOf> joined(module, "SwitchChannel",
                                     "Joins one buffer of each rank of a group over a switch.");
  declare_made<SwitchChannelOf, std::vector<int64_t>, BufferKind>(
      joined, "SwitchChannel",
      [](const SharedProgram& program, const std::vector<int64_t>& ranks, BufferKind buffer) {
        return SwitchChannelOf{program, dsl::SwitchChannel(program->program, ranks, buffer, here())};
      },
      py::arg("rank_list"), py::arg("buffer_type"));
  py::class_<RankViewOf> view(joined, "SwitchChannelRankView",
                              "Makes the calls of a switch channel for one member.");
  joined.def_property_readonly("rank_list", [](const SwitchChannelOf& self) { return self.it.rank_list(); })
      .def_property_readonly("buffer_type", [](const SwitchChannelOf& self) { return self.it.buffer_type(); })
      .def(
          "at_rank",
          [](const SwitchChannelOf& self, int64_t rank) {
            return RankViewOf{self.program, self.it.at_rank(rank, here())};
          },
          py::arg("rank"), "Returns a view that makes the calls for the member `rank`.")
      .def(
          "reduce",
          [](const SwitchChannelOf& self, int64_t rank, int64_t offset, int64_t size, const dsl::Chunk& dst,
             int64_t tb, ReduceOp op) { self.it.reduce(rank, offset, size, dst, tb, op, here()); },
          py::arg("rank"), py::arg("buffer_offset"), py::arg("size"), py::arg("dst_chunk"), py::arg("tb"),
          py::arg("reduce_op") = ReduceOp::sum,
          "Combines chunks [buffer_offset, buffer_offset + size) of every member, in rank order, and writes "
          "the result "
          "to dst_chunk.")
      .def(
          "broadcast",
          [](const SwitchChannelOf& self, int64_t rank, const dsl::Chunk& src, int64_t offset, int64_t size,
             int64_t tb) { self.it.broadcast(rank, src, offset, size, tb, here()); },
          py::arg("rank"), py::arg("src_chunk"), py::arg("buffer_offset"), py::arg("size"), py::arg("tb"),
          "Stores src_chunk to chunks [buffer_offset, buffer_offset + size) of every member.")
      .def(
          "broadcast_packets",
          [](const SwitchChannelOf& self, int64_t rank, const dsl::Chunk& src, int64_t offset, int64_t size,
             int64_t tb) { self.it.broadcast_packets(rank, src, offset, size, tb, here()); },
          py::arg("rank"), py::arg("src_chunk"), py::arg("buffer_offset"), py::arg("size"), py::arg("tb"),
          "Waits for this launch's packets at src_chunk, and stores them to every member's scratch.");
  view.def(
          "reduce",
          [](const RankViewOf& self, int64_t offset, int64_t size, const dsl::Chunk& dst, int64_t tb,
             ReduceOp op) { self.it.reduce(offset, size, dst, tb, op, here()); },
          py::arg("buffer_offset"), py::arg("size"), py::arg("dst_chunk"), py::arg("tb"),
          py::arg("reduce_op") = ReduceOp::sum)
      .def(
          "broadcast",
          [](const RankViewOf& self, const dsl::Chunk& src, int64_t offset, int64_t size, int64_t tb) {
            self.it.broadcast(src, offset, size, tb, here());
          },
          py::arg("src_chunk"), py::arg("buffer_offset"), py::arg("size"), py::arg("tb"))
      .def(
          "broadcast_packets",
          [](const RankViewOf& self, const dsl::Chunk& src, int64_t offset, int64_t size, int64_t tb) {
            self.it.broadcast_packets(src, offset, size, tb, here());
          },
          py::arg("src_chunk"), py::arg("buffer_offset"), py::arg("size"), py::arg("tb"));
}

void declare_words(py::module_& module) {
  py::enum_<SyncType>(module, "SyncType",
                      "Says where the threads of a block synchronise around a signal, wait, acquire or "
                      "release: before, so that the earlier work of all threads counts; after, so that no "
                      "thread goes on too early; both, which is the default and always right; or none, if "
                      "other operations do it.")
      .value("none", SyncType::none)
      .value("before", SyncType::before)
      .value("after", SyncType::after)
      .value("both", SyncType::both);
  py::enum_<BufferKind>(module, "BufferType", "Names the buffers of a rank.")
      .value("input", BufferKind::input)
      .value("output", BufferKind::output)
      .value("scratch", BufferKind::scratch);
  py::enum_<ReplicationPolicy>(module, "ReplicationPolicy",
                               "Says how the instances of a program share its data.")
      .value("interleaved", ReplicationPolicy::interleaved)
      .value("none", ReplicationPolicy::none);
  py::enum_<ReduceOp> op(module, "ReduceOperationType", "Says how elements of the same index are combined.");
  for (const ReduceOp one : all_reduce_ops) op.value(reduce_op_name(one), one);
}

}  // namespace

void declare_language(py::module_& module) {
  declare_words(module);
  declare_collectives(module);
  declare_program(module);
  declare_buffers(module);
  declare_rank(module);
  declare_channels(module);
  py::class_<Loop> loop(
      module, "LoopIterationContext",
      "Makes the operations recorded inside `with LoopIterationContext(unit, num_chunks):` the body of "
      "a loop over the units of num_chunks chunks. A unit has `unit` bytes.");
  declare_made<Loop, int64_t, int64_t>(
      loop, "LoopIterationContext",
      [](const SharedProgram& program, int64_t unit, int64_t num_chunks) {
        return std::make_unique<Loop>(program, unit, num_chunks);
      },
      py::arg("unit"), py::arg("num_chunks"));
  loop.def(
          "__enter__",
          [](Loop& self) -> Loop& {
            self.enter();
            return self;
          },
          py::return_value_policy::reference)
      .def("__exit__", [](Loop& self, const py::object& type, const py::object&, const py::object&) {
        self.exit(!type.is_none());
      });
}

}  // namespace chorale::python
