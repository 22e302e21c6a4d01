#include "reduction.hpp"

#include <cstring>

#include "chorale/device/numeric.hpp"

namespace chorale::cpu {

namespace {

template <ReduceOp Op, class T, class Source>
Stop view_reduced(const AnyReduced<Source>& of, const Group& group, uint64_t at, uint64_t bytes, char* room,
                  const char*& seen) {
  return Reduced<Op, T, Source, Source>{of.first, of.others, of.n}.view(group, at, bytes, room, seen);
}

template <class T>
void divide(char* data, uint64_t elements, uint32_t n) {
  for (uint64_t element = 0; element < elements; ++element) {
    T value;
    std::memcpy(&value, data + element * sizeof(T), sizeof(T));
    value = narrow<T>(finish_avg<T>(widen(value), n));
    std::memcpy(data + element * sizeof(T), &value, sizeof(T));
  }
}

template <ReduceOp Op, class T>
constexpr Reduction functions{view_reduced<Op, T, Mem>, view_reduced<Op, T, Either<LL8>>,
                              view_reduced<Op, T, Either<LL16>>, view_reduced<Op, T, Either<LL128>>,
                              divide<T>};

}  // namespace

const Reduction& reduction(ReduceOp op, DType type) {
  return with_dtype(type, [&](auto element) -> const Reduction& {
    using T = typename decltype(element)::type;
    switch (op) {
      case ReduceOp::min:
        return functions<ReduceOp::min, T>;
      case ReduceOp::max:
        return functions<ReduceOp::max, T>;
      case ReduceOp::prod:
        return functions<ReduceOp::prod, T>;
      case ReduceOp::sum:
      case ReduceOp::avg:
        break;
    }
    return functions<ReduceOp::sum, T>;
  });
}

void scale(void* out, const void* in, uint64_t elements, DType dtype, const Factor& factor) {
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T by, value;
    std::memcpy(&by, factor.at ? factor.at : &factor.value, sizeof by);
    const char* const from = static_cast<const char*>(in);
    char* const to = static_cast<char*>(out);
    // The elements may be at any address.
    for (uint64_t at = 0; at < elements; ++at) {
      std::memcpy(&value, from + at * sizeof value, sizeof value);
      value = scaled(value, by);
      std::memcpy(to + at * sizeof value, &value, sizeof value);
    }
  });
}

}  // namespace chorale::cpu
