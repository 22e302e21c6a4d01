/// \file
/// Makes inputs whose results are exact in every order of reduction, and computes the results that a run must
/// give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chorale/other_names.hpp"
#include "chorale/plan.hpp"
#include "tools/pattern.hpp"

namespace chorale::tools {

/// Makes test data and expected results for one plan, type, operator and size. The oracle is independent of
/// the executor: it shares no code with it, and computes in double, where all of its values are exact.
///
/// The data is small integers for sum and avg, and powers of two for prod. Every partial result is then a
/// value of the type, in any order and with a rounding after every step. So one wrong bit is an error, not
/// noise. The result of a plan with codecs may differ from it by the error that the proof of the plan allows.
/// Special values (docs/numbers.md) also have one result in every order. A rank's data repeats after
/// Pattern::period elements.
class Oracle {
 public:
  struct Case {
    DType dtype = DType::f32;
    ReduceOp op = ReduceOp::sum;
    uint64_t input_elements = 0, output_elements = 0;  ///< per rank
    uint64_t seed = 0;
    bool special = false;  ///< true: some floats are a NaN, an infinity or a negative zero
  };

  /// \throws Failure command_wrong if the type has too few bits for that many addends, or if sizes do not
  /// divide
  Oracle(const Plan&, const Case&);

  /// Returns false for plans that do not define their result ("test" collectives without post-conditions).
  bool knows_result() const { return known_; }

  /// Returns a rank's input. Another `turn` gives other data.
  Pattern input(uint32_t rank, uint64_t turn) const;

  /// Returns the patterns one of which a rank's output must match. There are none if the output may be
  /// anything, because the plan does not define it or because this rank receives nothing. There are several
  /// for a collective whose program chooses which rank sends to which ("sendrecv").
  std::vector<Pattern> outputs(uint32_t rank, uint64_t turn) const;

  /// Fills a rank's input.
  void fill(uint32_t rank, uint64_t turn, std::byte* input) const;

  /// Compares a rank's output with the expected one, bit for bit or within the tolerance.
  std::optional<Mismatch> compare(uint32_t rank, uint64_t turn, const std::byte* output) const;

 private:
  double value(uint32_t rank, uint64_t index, uint64_t turn) const;
  /// Returns the expected element `index` of the output of `rank`; nothing if the plan leaves it undefined.
  std::optional<double> expected(uint32_t rank, uint64_t index, uint64_t turn) const;
  uint64_t segment_elements() const;

  const Plan& plan_;
  Case case_;
  uint32_t addends_ = 1;  ///< the number of values that are combined into one result
  bool known_ = true, has_post_ = false;
  double tolerance_ = 0;         ///< of a plan with codecs
  std::vector<bool> receivers_;  ///< by rank, if the program chooses the senders and receivers
};

/// Returns element `index` of a rank's input.
using InputElement = std::function<double(uint32_t rank, uint64_t index)>;

/// Returns true if a plan defines its outputs, element by element.
bool promises(const Plan&);
/// Returns the message "a plan of 'test' does not say what its result is", with a guess of the intended
/// collective. Returns "" if the plan defines its result, or if a run shows it because the program chooses
/// the senders and receivers.
std::string unknown_result(const Plan&);
/// Returns element `index` of a rank's output for these inputs; nothing if the plan does not define it.
std::optional<double> promised(const Plan&, const Oracle::Case&, uint32_t rank, uint64_t index,
                               const InputElement&);

/// Returns the operator with which the plan reduces; sum if it reduces nothing.
ReduceOp reduce_op_of(const Plan&);

/// Returns the bytes over the busiest link per byte of message, as nccl-tests define it.
double bus_factor(const std::string& collective, uint32_t ranks);

}  // namespace chorale::tools
