/// \file
/// What a run must give: inputs whose results are exact in every order of reduction, and those results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chorale/other_names.hpp"
#include "chorale/plan.hpp"
#include "tools/pattern.hpp"

namespace chorale::tools {

/// Test data and expected results of one plan, type, operator and size. Independent of the executor: it
/// shares no code with it, and computes in double, where all of its values are exact.
///
/// Small integers for sum and avg, powers of two for prod: every partial result, in any order and with a
/// rounding after every step, is a value of the type. So one wrong bit is an error, not noise. The data of a
/// rank repeats after Pattern::period elements.
class Oracle {
 public:
  struct Case {
    DType dtype = DType::f32;
    ReduceOp op = ReduceOp::sum;
    uint64_t input_elements = 0, output_elements = 0;  ///< per rank
    uint64_t seed = 0;
  };

  /// \throws Failure command_wrong if the type has too few bits for that many addends, or sizes do not divide
  Oracle(const Plan&, const Case&);

  /// False for plans that say nothing of their result ("test" collectives without post-conditions).
  bool knows_result() const { return known_; }

  /// A rank's input. Another `turn` gives other data.
  Pattern input(uint32_t rank, uint64_t turn) const;

  /// What a rank's output must be: one of these. None if it may be anything: the plan does not say, or it is
  /// of "sendrecv" and nothing is sent to this rank. Several for "sendrecv", whose plan does not say who
  /// sends to whom.
  std::vector<Pattern> outputs(uint32_t rank, uint64_t turn) const;

  /// Fills a rank's input.
  void fill(uint32_t rank, uint64_t turn, std::byte* input) const;

  /// Compares a rank's output with what it must be, bit for bit.
  std::optional<Mismatch> compare(uint32_t rank, uint64_t turn, const std::byte* output) const;

 private:
  double value(uint32_t rank, uint64_t index, uint64_t turn) const;
  /// What output element `index` of `rank` must be; nothing if the plan leaves it undefined.
  std::optional<double> expected(uint32_t rank, uint64_t index, uint64_t turn) const;
  uint64_t segment_elements() const;

  const Plan& plan_;
  Case case_;
  uint32_t addends_ = 1;  ///< values that meet in one result
  bool known_ = true, has_post_ = false;
  std::vector<bool> receivers_;  ///< by rank; of "sendrecv"
};

/// Element `index` of a rank's input.
using InputElement = std::function<double(uint32_t rank, uint64_t index)>;

/// Whether a plan says what its outputs are, element by element.
bool promises(const Plan&);
/// "a plan of 'test' does not say what its result is", with what may have been meant; "" for plans that do,
/// or of which a run shows it ("sendrecv").
std::string unknown_result(const Plan&);
/// What element `index` of a rank's output is of these inputs; none: nothing is promised there.
std::optional<double> promised(const Plan&, const Oracle::Case&, uint32_t rank, uint64_t index,
                               const InputElement&);

/// The operator the plan reduces with; sum if it reduces nothing.
ReduceOp reduce_op_of(const Plan&);

/// Bytes over the busiest link per byte of message, as nccl-tests define it.
double bus_factor(const std::string& collective, uint32_t ranks);

}  // namespace chorale::tools
