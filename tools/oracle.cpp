#include "tools/oracle.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tools/command.hpp"

namespace chorale::tools {
namespace {

/// Layout of a float type: sign, exponent, mantissa. No mantissa: an integer.
struct Format {
  int mantissa = 0, bias = 0;
  bool is_signed = true;
  double exact = 0;  ///< every integer up to here is a value of the type
};

constexpr Format format(DType type) {
  switch (type) {
    case DType::f32:
      return {23, 127, true, 0x1p24};
    case DType::f16:
      return {10, 15, true, 0x1p11};
    case DType::bf16:
      return {7, 127, true, 0x1p8};
    case DType::f64:
      return {52, 1023, true, 0x1p50};
    case DType::i32:
      return {0, 0, true, 0x1p30};
    case DType::u32:
      return {0, 0, false, 0x1p31};
    case DType::i64:
      return {0, 0, true, 0x1p50};  // what a double can hold
    case DType::u8:
      return {0, 0, false, 255};
    case DType::i8:
      return {0, 0, true, 127};
    case DType::fp8_e4m3:
      return {3, 7, true, 0x1p4};
    case DType::fp8_e5m2:
      return {2, 15, true, 0x1p3};
  }
  return {};
}

/// Powers of two that may meet in one product: the smallest range is that of fp8_e4m3, 2^-6 to 2^8; i8 ends
/// at 2^6.
constexpr uint32_t prod_budget = 6;

constexpr uint64_t mix(uint64_t x) {  // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A number of [0, range), from a hash: the high half of the product, which needs no division.
constexpr uint64_t below(uint64_t hash, uint64_t range) {
  return uint64_t((static_cast<unsigned __int128>(hash) * range) >> 64);
}

constexpr bool is_reducing(std::string_view collective) {
  return collective == "allreduce" || collective == "reducescatter";
}

[[noreturn]] void refuse(const std::string& why, const std::string& help = "") {
  throw Failure(Exit::command_wrong, why, help);
}

}  // namespace

double decode(DType type, const std::byte* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, dtype_size(type));
  const Format layout = format(type);
  const int width = int(dtype_size(type)) * 8;
  if (!layout.mantissa) {
    if (!layout.is_signed) return double(bits);
    return double(int64_t(bits << (64 - width)) >> (64 - width));
  }
  const uint64_t mantissa = bits & ((uint64_t(1) << layout.mantissa) - 1);
  const int exponent_bits = width - 1 - layout.mantissa;
  const int exponent = int((bits >> layout.mantissa) & ((uint64_t(1) << exponent_bits) - 1));
  const bool negative = bits >> (width - 1);
  const bool top = exponent == (1 << exponent_bits) - 1;
  double value;
  if (type == DType::fp8_e4m3 ? top && mantissa == 7 : top && mantissa) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (top && type != DType::fp8_e4m3) {
    value = std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(double(mantissa), 1 - layout.bias - layout.mantissa);
  } else {
    value = std::ldexp(double(mantissa + (uint64_t(1) << layout.mantissa)),
                       exponent - layout.bias - layout.mantissa);
  }
  return negative ? -value : value;
}

void encode(DType type, double value, std::byte* element) {
  const Format layout = format(type);
  uint64_t bits = 0;
  if (!layout.mantissa) {
    bits = uint64_t(int64_t(value));
  } else if (value != 0) {
    // All values that the oracle makes are normal and exact: the mantissa's lower bits are zero.
    const uint64_t wide = std::bit_cast<uint64_t>(value);
    const int exponent = int((wide >> 52) & 0x7ff) - 1023 + layout.bias;
    const uint64_t mantissa = (wide & ((uint64_t(1) << 52) - 1)) >> (52 - layout.mantissa);
    bits = (uint64_t(exponent) << layout.mantissa) | mantissa;
    if (value < 0) bits |= uint64_t(1) << (dtype_size(type) * 8 - 1);
  }
  std::memcpy(element, &bits, dtype_size(type));
}

Oracle::Oracle(const Plan& plan, const Case& of) : plan_(plan), case_(of) {
  const std::string& what = plan.collective;
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
  } else if (is_reducing(what)) {
    addends_ = plan.ranks();
    const bool power_of_two = std::has_single_bit(addends_);
    if (of.op == ReduceOp::avg && addends_ > exact && !(power_of_two && format(of.dtype).mantissa)) {
      refuse("avg over " + std::to_string(addends_) + " ranks of " + type + " is not exact in every order",
             "use a wider --dtype, or --op max");
    }
  } else if (what != "allgather" && what != "alltoall" && what != "broadcast" && what != "sendrecv") {
    known_ = false;
  }
}

double Oracle::value(uint32_t rank, uint64_t index, uint64_t turn) const {
  const Format layout = format(case_.dtype);
  const uint64_t key = mix(case_.seed + 0x9e3779b97f4a7c15u * (turn + 1));
  const uint64_t shared = mix(key ^ (index * 0xd1342543de82ef95u));  // what all ranks know of an element
  const uint64_t own = mix(shared + 0x9e3779b97f4a7c15u * (uint64_t(rank) + 1));
  const uint64_t exact = uint64_t(layout.exact);
  const auto within = [&](uint64_t hash, uint64_t most) {
    return layout.is_signed ? double(below(hash, 2 * most + 1)) - double(most)
                            : double(below(hash, most + 1));
  };
  if (addends_ == 1 || case_.op == ReduceOp::min || case_.op == ReduceOp::max) return within(own, exact);

  const uint32_t count = addends_;
  // The ranks take turns at being first, so that no place of an order is always the dull one.
  const uint32_t place = uint32_t((rank + below(shared, count)) % count);
  if (case_.op == ReduceOp::prod) {
    const bool counts = has_post_ || place < prod_budget;
    const int power = !counts ? 0 : layout.mantissa ? int(below(own, 3)) - 1 : int(below(own, 2));
    return std::ldexp(layout.is_signed && (own & 1) ? -1.0 : 1.0, power);
  }
  if (case_.op == ReduceOp::avg && count <= exact) {
    // q + d and q - d in pairs: the sum is count * q, so the one division is exact.
    const uint64_t most = exact / (2 * uint64_t(count));
    const double q = within(mix(shared + 1), std::max<uint64_t>(most, 1));
    const uint64_t room = layout.is_signed ? most : uint64_t(std::min(double(most), q));
    if (most == 0 || (place == count - 1 && count % 2)) return q;
    const double d = double(below(mix(shared + 2 + place / 2), room + 1));
    return place % 2 ? q - d : q + d;
  }
  if (count <= exact) return within(own, exact / count);
  return place < exact ? within(own, 1) : 0;  // more ranks than the type can count: only some contribute
}

double Oracle::combine(double left, double right) const {
  switch (case_.op) {
    case ReduceOp::min:
      return std::min(left, right);
    case ReduceOp::max:
      return std::max(left, right);
    case ReduceOp::prod:
      return left * right;
    case ReduceOp::sum:
    case ReduceOp::avg:
      break;
  }
  return left + right;
}

std::optional<double> Oracle::reduced(uint64_t index, uint64_t turn) const {
  double result = value(0, index, turn);
  for (uint32_t rank = 1; rank < plan_.ranks(); ++rank) result = combine(result, value(rank, index, turn));
  return case_.op == ReduceOp::avg ? result / plan_.ranks() : result;
}

std::optional<double> Oracle::from_post(uint32_t rank, uint64_t index, uint64_t turn) const {
  const Segmentation parts = segmentation(plan_);
  const uint64_t in = case_.input_elements / parts.input, out = case_.output_elements / parts.output;
  if (rank >= plan_.extension.post.size()) return {};
  const auto& segments = plan_.extension.post[rank];
  if (index / out >= segments.size() || segments[index / out].empty()) return {};
  std::optional<double> result;
  for (const Contribution& from : segments[index / out]) {
    const double addend = value(from.rank, from.chunk * in + index % out, turn);
    result = result ? combine(*result, addend) : addend;
  }
  return result;
}

std::optional<double> Oracle::expected(uint32_t rank, uint64_t index, uint64_t turn) const {
  if (has_post_) return from_post(rank, index, turn);
  const std::string& what = plan_.collective;
  if (what == "allreduce") return reduced(index, turn);
  if (what == "reducescatter") return reduced(rank * case_.output_elements + index, turn);
  if (what == "allgather") {
    return value(uint32_t(index / case_.input_elements), index % case_.input_elements, turn);
  }
  if (what == "alltoall") {
    const uint64_t part = case_.input_elements / plan_.ranks();
    return value(uint32_t(index / part), rank * part + index % part, turn);
  }
  if (what == "broadcast") return value(plan_.extension.root, index, turn);
  return {};
}

void Oracle::fill(uint32_t rank, uint64_t turn, std::byte* input) const {
  const size_t width = dtype_size(case_.dtype);
  for (uint64_t index = 0; index < case_.input_elements; ++index) {
    encode(case_.dtype, value(rank, index, turn), input + index * width);
  }
}

std::optional<Mismatch> Oracle::compare_with(uint32_t rank, uint64_t turn, const std::byte* output,
                                             std::optional<uint32_t> sender) const {
  const size_t width = dtype_size(case_.dtype);
  std::optional<Mismatch> first;
  for (uint64_t index = 0; index < case_.output_elements; ++index) {
    const std::optional<double> want = sender ? value(*sender, index, turn) : expected(rank, index, turn);
    if (!want) continue;
    std::byte bits[8];
    encode(case_.dtype, *want, bits);
    if (std::memcmp(bits, output + index * width, width) == 0) continue;
    if (!first) first = {rank, index, 0, decode(case_.dtype, output + index * width), *want};
    ++first->elements;
  }
  return first;
}

std::optional<Mismatch> Oracle::compare(uint32_t rank, uint64_t turn, const std::byte* output) const {
  if (!known_) return {};
  if (has_post_ || plan_.collective != "sendrecv") return compare_with(rank, turn, output, {});
  // The plan does not say who sends to whom: what has come must be the whole input of one rank.
  std::optional<Mismatch> nearest;
  for (uint32_t sender = 0; sender < plan_.ranks(); ++sender) {
    const std::optional<Mismatch> found = compare_with(rank, turn, output, sender);
    if (!found) return {};
    if (!nearest || found->elements < nearest->elements) nearest = found;
  }
  return nearest;
}

ReduceOp reduce_op_of(const Plan& plan) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (info(op.code).has(Role::Reduce)) return op.reduce_op;
      }
    }
  }
  return ReduceOp::sum;
}

double bus_factor(const Plan& plan) {
  const double ranks = plan.ranks();
  const std::string& what = plan.collective;
  if (what == "allreduce") return 2 * (ranks - 1) / ranks;
  if (what == "allgather" || what == "reducescatter" || what == "alltoall") return (ranks - 1) / ranks;
  return 1;
}

}  // namespace chorale::tools
