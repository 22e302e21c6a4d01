#pragma once
/// \file
/// Reads and writes plans as JSON in MSCCL++'s schema, one operation per line, so that plans diff, review and
/// grep like code.

#include <cstdint>
#include <iosfwd>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "chorale/plan.hpp"

namespace chorale {

/// Says that the text is no plan. what() is "<path>: <what was found>, expected <what>"; load() puts the name
/// of the file in front.
struct PlanError : std::runtime_error {
  PlanError(std::string path, const std::string& message)
      : std::runtime_error(path + ": " + message), json_path(std::move(path)) {}
  PlanError(const std::string& file, const PlanError& error)
      : std::runtime_error(file + ": " + error.what()), json_path(error.json_path) {}
  std::string json_path;  ///< e.g. "/gpus/0/threadblocks/1/ops/3/src_buff/0/index"
};

/// Returns the canonical text: write(read(write(p))) == write(p), byte for byte.
std::string write(const Plan&);
/// Writes the same text to a stream, without the whole text in memory. The stream says whether that worked.
void write(const Plan&, std::ostream&);

/// Returns one operation as it stands in a plan file, on one line, without its line number.
std::string write(const Plan&, const ThreadBlock&, const Op&, uint32_t rank = 0);

/// Writes the same tree as CBOR (RFC 8949), which takes two thirds of the size and is quicker to read. The
/// thread blocks of a rank are a byte string that holds CBOR (tag 24), so that a reader can skip the other
/// ranks. Numbers keep their digits.
void write_cbor(const Plan&, std::ostream&);

/// Reads a plan of MSCCL++ or of ours, as JSON or CBOR. Keeps unknown keys. Does not tell whether the plan is
/// right: run check().
/// \throws PlanError
Plan read(std::string_view bytes);

/// Reads a plan for one rank alone, without the thread blocks of the others (Plan::only_rank). You can run
/// it, but neither check nor write it. In CBOR the thread blocks of the other ranks are not even parsed.
/// \throws PlanError
Plan read(std::string_view bytes, uint32_t rank);

/// Reads a file; "-" is standard input.
/// \throws std::runtime_error naming the file and the reason
/// \throws PlanError naming the file, too
Plan load(const std::string& path);
/// Reads a file for one rank alone. All ranks of a run have to load the same bytes in the same way.
Plan load(const std::string& path, uint32_t rank);

}  // namespace chorale
