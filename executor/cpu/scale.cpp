#include "scale.hpp"

#include <cstring>

#include "chorale/device/numeric.hpp"

namespace chorale::cpu {

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
