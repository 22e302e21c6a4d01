#pragma once
/// \file
/// Include this header to write an algorithm. It includes the whole language.
///
///   #include <chorale/dsl.hpp>
///   using namespace chorale::dsl;
///
///   // Rank 0 sends its input to rank 1.
///   CHORALE_PROGRAM(send_once, Parameters& with) {
///     const int chunks = with("chunks", 1, "chunks of the message");
///     Program program({.name = "send_once", .collective = SendRecv{.ranks = 2, .chunk_factor = chunks}});
///     MemoryChannel there(program, 1, 0), back(program, 0, 1);
///     back.signal(0);  // rank 1 has begun: its output may be written
///     there.wait(0);
///     there.put(program.rank(1).get_output_buffer()[{0, chunks}],
///               program.rank(0).get_input_buffer()[{0, chunks}], 0);
///     there.signal(0);  // the message is there
///     back.wait(0);
///     return program;
///   }
///
/// Names, argument order and preconditions are those of the MSCCL++ DSL, so you can port a program line by
/// line. Where Python has `tb=` or `tb_group=`, pass the number or the ThreadBlockGroup. A call that breaks a
/// precondition throws nothing. It adds one finding with the author's line to Program::diagnostics() and
/// records nothing. Later calls that use its result add no finding, so one mistake gives one finding.

#include "chorale/dsl/block.hpp"
#include "chorale/dsl/buffer.hpp"
#include "chorale/dsl/channel.hpp"
#include "chorale/dsl/collectives.hpp"
#include "chorale/dsl/program.hpp"
#include "chorale/dsl/rank.hpp"
#include "chorale/dsl/registry.hpp"
#include "chorale/dsl/schedule.hpp"
#include "chorale/dsl/switch_channel.hpp"
