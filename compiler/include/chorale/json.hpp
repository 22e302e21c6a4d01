#pragma once
/// \file
/// Plans are read and written as JSON in MSCCL++'s schema. The text has one operation per line, so you can
/// diff, review and grep it like code.

#include <cstdint>
#include <iosfwd>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "chorale/plan.hpp"
#include "chorale/plan_error.hpp"

namespace chorale {

/// Returns the canonical text of a plan: write(read(write(p))) == write(p), byte for byte.
std::string write(const Plan&);
/// Writes the same text to a stream without holding it all in memory. Check the stream for errors afterwards.
void write(const Plan&, std::ostream&);

/// Returns one operation as in a plan file, on one line, without the author's line.
/// \param rank  the rank of the thread block
std::string write(const Plan&, const ThreadBlock&, const Op&, uint32_t rank = 0);

/// Writes the same tree as CBOR (RFC 8949), which takes two thirds of the size and reads faster. The thread
/// blocks of each rank are a byte string that holds CBOR (tag 24), so a reader can skip the other ranks.
/// Numbers keep their digits.
void write_cbor(const Plan&, std::ostream&);

/// Reads a plan of MSCCL++ or of Chorale, as JSON or CBOR. Keeps unknown keys. Does not check the plan; call
/// check() for that.
/// \throws PlanError
Plan read(std::string_view bytes);

/// Reads a plan for one rank, without the thread blocks of the others (Plan::only_rank). You can run such a
/// plan, but you can neither check nor write it. In CBOR, the thread blocks of the other ranks are not even
/// parsed.
/// \throws PlanError
Plan read(std::string_view bytes, uint32_t rank);

/// Reads a plan from a file; "-" is standard input.
/// \throws std::runtime_error naming the file and the reason if it cannot be read
/// \throws PlanError naming the file if it holds no plan
Plan load(const std::string& path);
/// Reads a file for one rank. All ranks of a run must load the same bytes in this way.
Plan load(const std::string& path, uint32_t rank);

}  // namespace chorale
