#include "tools/oracle.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "chorale/collective.hpp"
#include "chorale/combine.hpp"
#include "chorale/did_you_mean.hpp"
#include "chorale/proof.hpp"
#include "chorale/splitmix64.hpp"
#include "chorale/storage.hpp"
#include "tools/command.hpp"
#include "tools/elements.hpp"

namespace chorale::tools {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Limits the powers of two in one product. The smallest range is that of fp8_e4m3, 2^-6 to 2^8; i8
/// ends at 2^6.
constexpr uint32_t prod_budget = 6;

/// Maps a hash to a number of [0, range). It takes the high half of the product, which needs no division.
constexpr uint64_t below(uint64_t hash, uint64_t range) {
  return uint64_t((static_cast<unsigned __int128>(hash) * range) >> 64);
}

[[noreturn]] void refuse(const std::string& why, const std::string& help = "") {
  throw Failure(Exit::command_wrong, why, help);
}

/// Returns how far results of a plan with codecs may be from the exact ones, as its proof says.
/// \param magnitudes  the sum of the largest magnitudes of the addends
double tolerance_of(const Plan& plan, DType dtype, ReduceOp op, double magnitudes) {
  if (op == ReduceOp::prod)
    refuse(
        "prod cannot be checked for plan '" + plan.name + "', because the error of its codecs has no bound",
        "use --op sum");
  const Quantised times = prove_plan(plan, {}, true).facts.quantised;
  // Each encoding, and the result, is also rounded to the type.
  const double roundings = 1 + std::accumulate(times.begin(), times.end(), 0);
  const double rounding = roundings * std::ldexp(1.0, -format(dtype).mantissa - 1);
  return (error_factor(times) + rounding) * magnitudes;
}

}  // namespace

bool promises(const Plan& plan) {
  const Outcome outcome(plan);
  return outcome.is_known() && !outcome.leaves_sender_open();
}

std::string unknown_result(const Plan& plan) {
  if (Outcome(plan).is_known()) return "";
  return "a plan of '" + plan.collective + "' does not say what its result is" +
         did_you_mean(plan.collective, standard_collectives);
}

std::optional<double> promised(const Plan& plan, const Oracle::Case& of, uint32_t rank, uint64_t index,
                               const InputElement& input) {
  const Outcome outcome(plan);
  if (!outcome.is_known() || outcome.leaves_sender_open()) return {};
  const Segmentation parts = segmentation(plan);
  const uint64_t in = of.input_elements / parts.input, out = of.output_elements / parts.output;
  std::optional<double> result;
  uint32_t addends = 0;
  outcome.for_each(rank, index / out, /*sender=*/0, [&](const Contribution& from) {
    const double addend = input(from.rank, from.chunk * in + index % out);
    result = result ? reference::combine(of.op, *result, addend) : addend;
    ++addends;
  });
  if (result && of.op == ReduceOp::avg) return *result / addends;
  return result;
}

Oracle::Oracle(const Plan& plan, const Case& of) : plan_(plan), case_(of) {
  const std::string type = dtype_name(of.dtype), op = reduce_op_name(of.op);
  const double exact = format(of.dtype).exact;
  has_post_ = !plan.extension.post.empty();
  if (has_post_) {
    for (const auto& rank : plan.extension.post) {
      for (const auto& segment : rank) addends_ = std::max(addends_, uint32_t(segment.size()));
    }
    const Segmentation parts = segmentation(plan);
    if (of.input_elements % std::max<uint64_t>(parts.input, 1) ||
        of.output_elements % std::max<uint64_t>(parts.output, 1)) {
      refuse("the result of plan '" + plan.name + "' is defined by segments, and " +
                 std::to_string(of.input_elements) + " input elements are not " +
                 std::to_string(parts.input) + " equal ones",
             "choose a size that is a multiple of " +
                 format_bytes(parts.input * parts.output * dtype_size(of.dtype)));
    }
    if (addends_ > 1 && of.op == ReduceOp::avg) {
      refuse("avg cannot be checked for plan '" + plan.name +
                 "', whose results have different numbers of addends",
             "use --op sum");
    }
    if ((of.op == ReduceOp::sum && addends_ > exact) || (of.op == ReduceOp::prod && addends_ > prod_budget)) {
      refuse(op + " of " + std::to_string(addends_) + " values of " + type + " is not exact in every order",
             "use a wider --dtype, or --op max");
    }
  } else if (collective_reduces(plan.collective)) {
    addends_ = plan.ranks();
    const bool power_of_two = std::has_single_bit(addends_);
    if (of.op == ReduceOp::avg && addends_ > exact && !(power_of_two && format(of.dtype).mantissa)) {
      refuse("avg over " + std::to_string(addends_) + " ranks of " + type + " is not exact in every order",
             "use a wider --dtype, or --op max");
    }
  } else {
    known_ = unknown_result(plan).empty();
    if (Outcome(plan).leaves_sender_open()) receivers_ = receivers(plan, /*one_storage=*/false);
  }
  if (plan.extension.codecs.empty()) return;
  case_.special = false;  // one NaN or infinity would make a whole block NaN
  tolerance_ = tolerance_of(plan, of.dtype, of.op, exact);
}

double Oracle::value(uint32_t rank, uint64_t index, uint64_t turn) const {
  const Format layout = format(case_.dtype);
  const uint64_t key = mix64(case_.seed + splitmix64_step * (turn + 1));
  const uint64_t shared =
      mix64(key ^ (index % Pattern::period * 0xd1342543de82ef95u));  // the same on all ranks for an element
  const uint64_t own = mix64(shared + splitmix64_step * (uint64_t(rank) + 1));
  const uint64_t exact = uint64_t(layout.exact);
  const auto within = [&](uint64_t hash, uint64_t most) {
    return layout.is_signed ? double(below(hash, 2 * most + 1)) - double(most)
                            : double(below(hash, most + 1));
  };
  // Some elements have special values, on some of the ranks.
  if (case_.special && layout.mantissa && below(mix64(shared + 3), 61) == 0) {
    const uint64_t which = below(mix64(own + 3), 8);
    if (which == 0) return std::numeric_limits<double>::quiet_NaN();
    if (which < 3 && has_infinities(case_.dtype)) return which == 1 ? infinity : -infinity;
    // In an average, zeros would make a sum that cannot be divided exactly by the number of ranks.
    if (which < 6 && case_.op != ReduceOp::avg) return which == 5 ? 0.0 : -0.0;
  }
  if (addends_ == 1 || case_.op == ReduceOp::min || case_.op == ReduceOp::max) return within(own, exact);

  const uint32_t count = addends_;
  // The first rank changes from element to element, so that no rank always has the value that adds nothing.
  const uint32_t place = uint32_t((rank + below(shared, count)) % count);
  if (case_.op == ReduceOp::prod) {
    const bool counts = has_post_ || place < prod_budget;
    const int power = !counts ? 0 : layout.mantissa ? int(below(own, 3)) - 1 : int(below(own, 2));
    return std::ldexp(layout.is_signed && (own & 1) ? -1.0 : 1.0, power);
  }
  if (case_.op == ReduceOp::avg && count <= exact) {
    // Values are pairs q + d and q - d. The sum is count * q, so the one division is exact.
    const uint64_t most = exact / (2 * uint64_t(count));
    const double q = within(mix64(shared + 1), std::max<uint64_t>(most, 1));
    const uint64_t room = layout.is_signed ? most : uint64_t(std::min(double(most), q));
    if (most == 0 || (place == count - 1 && count % 2)) return q;
    const double d = double(below(mix64(shared + 2 + place / 2), room + 1));
    return place % 2 ? q - d : q + d;
  }
  if (count <= exact) return within(own, exact / count);
  return place < exact ? within(own, 1) : 0;  // with more ranks than the type can count, only some contribute
}

std::optional<double> Oracle::expected(uint32_t rank, uint64_t index, uint64_t turn) const {
  return promised(plan_, case_, rank, index,
                  [&](uint32_t of, uint64_t element) { return value(of, element, turn); });
}

/// Returns the number of consecutive elements of an output that come from the same contributors, at the same
/// offset.
uint64_t Oracle::segment_elements() const { return case_.output_elements / segmentation(plan_).output; }

Pattern Oracle::input(uint32_t rank, uint64_t turn) const {
  return {case_.dtype, case_.input_elements, case_.input_elements,
          [&](uint64_t index) { return value(rank, index, turn); }};
}

std::vector<Pattern> Oracle::outputs(uint32_t rank, uint64_t turn) const {
  std::vector<Pattern> patterns;
  if (!known_) return patterns;
  if (promises(plan_)) {
    patterns.emplace_back(case_.dtype, case_.output_elements, segment_elements(),
                          [&](uint64_t index) { return expected(rank, index, turn); });
    patterns.back().accept(tolerance_);
    return patterns;
  }
  if (!receivers_[rank]) return patterns;
  // The output must be the whole input of one rank.
  for (uint32_t sender = 0; sender < plan_.ranks(); ++sender) {
    patterns.emplace_back(case_.dtype, case_.output_elements, case_.output_elements,
                          [&](uint64_t index) { return value(sender, index, turn); });
    patterns.back().accept(tolerance_);
  }
  return patterns;
}

void Oracle::fill(uint32_t rank, uint64_t turn, std::byte* to) const {
  const Pattern pattern = input(rank, turn);
  pattern.copy(0, to, pattern.bytes());
}

std::optional<Mismatch> Oracle::compare(uint32_t rank, uint64_t turn, const std::byte* output) const {
  std::optional<Mismatch> nearest;
  for (const Pattern& pattern : outputs(rank, turn)) {
    const std::optional<Mismatch> found = pattern.compare(0, output, pattern.bytes());
    if (!found) return {};
    if (!nearest || found->elements < nearest->elements) nearest = found;
  }
  if (nearest) nearest->rank = rank;
  return nearest;
}

namespace {

const Op* first_reduction(const Plan& plan) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (info(op.code).has(Role::Reduce)) return &op;
      }
    }
  }
  return nullptr;
}

}  // namespace

ReduceOp reduce_op_of(const Plan& plan) {
  const Op* const reduction = first_reduction(plan);
  return reduction ? reduction->reduce_op : ReduceOp::sum;
}

double bus_factor(const std::string& what, uint32_t ranks) {
  const CollectiveInfo& collective = collective_info(what);
  const double others = double(ranks - 1) / ranks;
  if (collective.input_parts(2) + collective.output_parts(2) > 2) return others;
  return collective.reduces() && !collective.only_root_receives() ? 2 * others : 1;
}

}  // namespace chorale::tools
