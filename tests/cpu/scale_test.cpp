/// \file
/// Multiplies elements of all types by a factor and compares with the scalar oracle.

#include "tests/cpu/harness.hpp"
#include "tests/scaled.hpp"

namespace chorale::test {
namespace {

TEST(Scale, gives_the_products_of_the_oracle) {
  run_local(1, [](World& world) {
    Executor executor(world);
    const std::string wrong = scale_wrongly([&](const ScaleCase& of) {
      const size_t bytes = of.input.size();
      oracle::Bytes in(bytes + of.shift), out(bytes + of.shift);
      std::memcpy(in.data() + of.shift, of.input.data(), bytes);
      std::byte* const to = (of.in_place ? in : out).data() + of.shift;
      executor.scale(to, in.data() + of.shift, of.elements, of.dtype, factor_of(of, of.factor.data()));
      return oracle::Bytes(to, to + bytes);
    });
    EXPECT_EQ(wrong, "");
  });
}

TEST(Scale, reads_a_factor_in_memory_when_it_runs) {
  run_local(1, [](World& world) {
    Executor executor(world);
    float factor = 2, values[] = {1, 2, 3};
    const Factor by{.at = &factor};
    factor = 0.5f;
    executor.scale(values, values, 3, DType::f32, by);
    EXPECT_EQ(values[0], 0.5f);
    EXPECT_EQ(values[2], 1.5f);
  });
}

}  // namespace
}  // namespace chorale::test
