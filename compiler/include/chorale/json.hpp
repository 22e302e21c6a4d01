#pragma once
/// \file
/// Plans as JSON in MSCCL++'s schema, one operation per line, so that plans diff,
/// review and grep like code.

#include <cstdint>
#include <iosfwd>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "chorale/plan.hpp"

namespace chorale {

/// The text is no plan. what() is "<path>: <what was found>, expected <what>", of load() behind the file.
struct PlanError : std::runtime_error {
  PlanError(std::string path, const std::string& message)
      : std::runtime_error(path + ": " + message), json_path(std::move(path)) {}
  PlanError(const std::string& file, const PlanError& error)
      : std::runtime_error(file + ": " + error.what()), json_path(error.json_path) {}
  std::string json_path;  ///< e.g. "/gpus/0/threadblocks/1/ops/3/src_buff/0/index"
};

/// Canonical text: write(read(write(p))) == write(p), byte for byte.
std::string write(const Plan&);
/// The same to a stream, without the whole text in memory. Whether it was written is the stream's to say.
void write(const Plan&, std::ostream&);

/// One operation as it stands in a plan file, on one line, without its line number.
std::string write(const Plan&, const ThreadBlock&, const Op&, uint32_t rank = 0);

/// The same tree as CBOR (RFC 8949), two thirds of the size and quicker to read. What a rank does is a byte
/// string that holds CBOR (tag 24), so that a reader can pass over the other ranks. Numbers keep
/// their digits.
void write_cbor(const Plan&, std::ostream&);

/// Reads a plan of MSCCL++ or of ours, as JSON or CBOR; unknown keys are kept.
/// Says nothing about whether the plan is right: run check().
/// \throws PlanError
Plan read(std::string_view bytes);

/// For one rank alone: the thread blocks of the others are not there (Plan::only_rank), which is enough to
/// run it, but neither to check nor to write it. CBOR is not even parsed where it says what the others do.
/// \throws PlanError
Plan read(std::string_view bytes, uint32_t rank);

/// Reads a file; "-" is standard input.
/// \throws std::runtime_error naming the file and the reason; PlanError, naming the file, too
Plan load(const std::string& path);
/// The same for one rank alone. All ranks of a run have to load the same bytes in the same way.
Plan load(const std::string& path, uint32_t rank);

}  // namespace chorale
