/// \file
/// Compares the built-in functions of host schedules with their definitions, on any backend.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "chorale/json.hpp"
#include "chorale/schedule.hpp"
#include "tests/unit/compiler/schedule/text.hpp"
#include "tests/unit/device/conversions.hpp"

namespace chorale::test {

/// Makes a schedule of calls on stream main, with inputs and expected outputs.
class FunctionCases {
 public:
  using Shape = std::vector<uint64_t>;

  void input(const std::string& name, DType dtype, const Shape& shape, const Bytes& values) {
    tensor(name, dtype, shape, "in");
    in_[name] = values;
  }
  void output(const std::string& name, DType dtype, const Shape& shape, const Bytes& values) {
    tensor(name, dtype, shape, "out");
    out_[name] = {dtype, values, {}};
  }
  /// Adds an output of f32, each element of which has to be within its bound.
  void output_near(const std::string& name, const Shape& shape, const std::vector<double>& values,
                   const std::vector<double>& bounds) {
    tensor(name, DType::f32, shape, "out");
    Expected& expected = out_[name] = {DType::f32, {}, bounds};
    for (const double value : values) append(expected.values, value);
  }

  /// Adds a call. Views are in JSON: ["x",[1,2]] selects index 2 of axis 1, and ["x",[1,2,3]] three from
  /// there on.
  void call(const std::string& function, const std::string& writes, const std::string& reads,
            const std::string& attributes = "") {
    body_ += fmt::format(R"({}{{"op":"call","fn":"{}","writes":[{}],"reads":[{}]{}}})",
                         body_.empty() ? "" : ",", function, writes, reads,
                         attributes.empty() ? "" : fmt::format(R"(,"attrs":{{{}}})", attributes));
  }

  /// Copies bytes into the backend's memory, and out of it.
  using Copy = std::function<void(void* to, const void* from, uint64_t bytes)>;

  /// \param found  receives the bytes of all outputs
  /// \return "good", or the error
  std::string run(World& world, const Config& config, const Copy& copy,
                  std::map<std::string, Bytes>& found) const {
    const Plan plan = read(
        schedule::plan_with(fmt::format(R"({{"params":{{}},"tensors":[{}],"body":[{}]}})", tensors_, body_)));
    ScheduleRun schedule(world, plan, {}, config);
    for (const auto& [name, values] : in_) copy(schedule.buffer(name), values.data(), values.size());
    schedule.run();
    schedule.synchronize();
    std::string wrong;
    for (const auto& [name, expected] : out_) {
      Bytes& got = found[name] = Bytes(schedule.bytes(name));
      copy(got.data(), schedule.buffer(name), got.size());
      if (wrong.empty()) wrong = differs(name, expected, got);
    }
    return wrong.empty() ? "good" : wrong;
  }

  /// Returns whether every backend must give the same bits.
  bool exactly(const std::string& output) const { return out_.at(output).bounds.empty(); }

 private:
  struct Expected {
    DType dtype;
    Bytes values;                ///< with bounds: of f64
    std::vector<double> bounds;  ///< empty: the bits must be equal
  };

  void tensor(const std::string& name, DType dtype, const Shape& shape, const char* role) {
    tensors_ +=
        fmt::format(R"({}{{"name":"{}","dtype":"{}","shape":[{}],"role":"{}"}})", tensors_.empty() ? "" : ",",
                    name, dtype_name(dtype), fmt::join(shape, ","), role);
  }

  static std::string differs(const std::string& name, const Expected& expected, const Bytes& got) {
    const bool near = !expected.bounds.empty();
    const DType dtype = near ? DType::f64 : expected.dtype;
    const size_t size = dtype_size(expected.dtype);
    for (size_t at = 0; at < got.size() / size; ++at) {
      const uint8_t *const one = got.data() + at * size, *const other =
                                                             expected.values.data() + at * dtype_size(dtype);
      const Exact is = exact(expected.dtype, one), should_be = exact(dtype, other);
      if (near ? std::fabs(is - should_be) <= expected.bounds[at] : std::equal(one, one + size, other))
        continue;
      return fmt::format("{}: element {} is {}, not {}{}", name, at, is, should_be,
                         near ? fmt::format(" within {}", expected.bounds[at]) : "");
    }
    return "";
  }

  std::string tensors_, body_;
  std::map<std::string, Bytes> in_;
  std::map<std::string, Expected> out_;
};

/// Returns whole numbers as elements of a type that can hold all of them.
inline Bytes elements(DType dtype, const std::vector<int64_t>& values) {
  Bytes all;
  for (const int64_t value : values) append_converted(all, dtype, DType::i64, Exact(value));
  return all;
}
inline std::vector<int64_t> counted(uint64_t count, const std::function<int64_t(uint64_t)>& at) {
  std::vector<int64_t> all;
  for (uint64_t k = 0; k < count; ++k) all.push_back(at(k));
  return all;
}

/// Adds casts of every type to every other, and one between views with gaps.
inline void add_casts(FunctionCases& cases) {
  for (const DType from : all_dtypes) {
    const Bytes values = values_to_convert(from);
    const uint64_t n = values.size() / dtype_size(from);
    const std::string in = fmt::format("all_{}", dtype_name(from));
    cases.input(in, from, {n}, values);
    for (const DType to : all_dtypes) {
      const std::string out = fmt::format("cast_{}_of_{}", dtype_name(to), dtype_name(from));
      cases.output(out, to, {n}, to == from ? values : converted(to, from, values));
      cases.call("cast", fmt::format(R"(["{}"])", out), fmt::format(R"(["{}"])", in));
    }
  }
  const auto value = [](uint64_t row, uint64_t column) { return int64_t(row * 6 + column) - 9; };
  cases.input("gaps", DType::f32, {5, 6},
              elements(DType::f32, counted(30, [&](uint64_t k) { return value(k / 6, k % 6); })));
  cases.output("cast_gaps", DType::i8, {3, 4}, elements(DType::i8, counted(12, [&](uint64_t k) {
                                                          return k % 4 == 3 ? 7 : value(k / 4 + 1, k % 4 + 2);
                                                        })));
  cases.call("fill", R"(["cast_gaps"])", "", R"("value":7)");
  cases.call("cast", R"(["cast_gaps",[1,0,3]])", R"(["gaps",[0,1,3],[1,2,3]])");
}

/// Adds add, sum, copy, zero and fill for every type, with contiguous and other elements.
inline void add_elementwise(FunctionCases& cases) {
  // Sums are 8 at most, which every type has.
  const auto a_at = [](uint64_t k) { return int64_t(k * 7 % 5 % 4); };
  const auto b_at = [](uint64_t k) { return int64_t(k * 3 % 4); };
  const auto x_at = [](uint64_t i, uint64_t j, uint64_t k) { return int64_t((i + j * 5 + k * 3) % 7 % 2); };
  for (const DType dtype : all_dtypes) {
    const auto name = [&](const char* what) { return fmt::format("{}_{}", what, dtype_name(dtype)); };
    const auto view = [&](const char* what, const char* part = "") {
      return fmt::format(R"(["{}"{}])", name(what), part);
    };
    const auto typed = [&](uint64_t count, const std::function<int64_t(uint64_t)>& at) {
      return elements(dtype, counted(count, at));
    };
    cases.input(name("a"), dtype, {8, 16}, typed(128, a_at));
    cases.input(name("b"), dtype, {8, 16}, typed(128, b_at));
    cases.output(name("add"), dtype, {8, 16}, typed(128, [&](uint64_t k) { return a_at(k) + b_at(k); }));
    cases.call("add", view("add"), view("a") + "," + view("b"));
    cases.output(name("add_gaps"), dtype, {7},
                 typed(7, [&](uint64_t k) { return a_at(k * 16 + 3) + b_at(2 * 16 + k + 5); }));
    cases.call("add", view("add_gaps"), view("a", ",[0,0,7],[1,3]") + "," + view("b", ",[0,2],[1,5,7]"));

    cases.input(name("x"), dtype, {3, 4, 8},
                typed(96, [&](uint64_t k) { return x_at(k / 32, k / 8 % 4, k % 8); }));
    const auto summed = [&](uint64_t count, uint64_t extent,
                            const std::function<int64_t(uint64_t, uint64_t)>& at) {
      return typed(count, [&](uint64_t k) {
        int64_t total = 0;
        for (uint64_t index = 0; index < extent; ++index) total += at(k, index);
        return total;
      });
    };
    cases.output(name("sum_0"), dtype, {4, 8},
                 summed(32, 3, [&](uint64_t k, uint64_t i) { return x_at(i, k / 8, k % 8); }));
    cases.call("sum", view("sum_0"), view("x"));
    cases.output(name("sum_1"), dtype, {3, 8},
                 summed(24, 4, [&](uint64_t k, uint64_t j) { return x_at(k / 8, j, k % 8); }));
    cases.call("sum", view("sum_1"), view("x"), R"("axis":1)");
    cases.output(name("sum_2"), dtype, {3, 2},
                 summed(6, 8, [&](uint64_t k, uint64_t i) { return x_at(k / 2, k % 2 + 1, i); }));
    cases.call("sum", view("sum_2"), view("x", ",[1,1,2]"), R"("axis":2)");

    cases.output(name("copy"), dtype, {3, 8}, typed(24, [&](uint64_t k) { return x_at(k / 8, 2, k % 8); }));
    cases.call("copy", view("copy"), view("x", ",[1,2]"));
    // 1003 is rounded, wrapped or too large, depending on the type.
    cases.output(name("fill"), dtype, {4, 6}, typed(24, [](uint64_t k) {
                   return k % 6 == 2 ? -3 : k / 6 == 1 && k % 6 > 2 ? 0 : 1003;
                 }));
    cases.call("fill", view("fill"), "", R"("value":1003)");
    cases.call("fill", view("fill", ",[1,2]"), "", R"("value":-3)");
    cases.call("zero", view("fill", ",[0,1],[1,3,3]"), "");
  }
  // Integers wrap.
  cases.input("ends", DType::i32, {4}, elements(DType::i32, {2147483647, -2147483648, 2147483647, -1}));
  cases.output("wrapped", DType::i32, {4}, elements(DType::i32, {-2, 0, -2, -2}));
  cases.call("add", R"(["wrapped"])", R"(["ends"],["ends"])");
}

/// Adds matmul and linear of the types that both backends have, of whole numbers whose sums are exact.
inline void add_products(FunctionCases& cases) {
  constexpr uint64_t batches = 6, m = 5, k = 7, n = 4;
  const auto a_at = [](uint64_t batch, uint64_t row, uint64_t at) {
    return int64_t((batch + row * 3 + at * 5) % 9) - 4;
  };
  const auto b_at = [](uint64_t batch, uint64_t at, uint64_t column) {
    return int64_t((batch * 2 + at * 2 + column * 7) % 9) - 4;
  };
  const auto bias_at = [](uint64_t column) { return int64_t(column * 5) - 6; };
  const auto dot = [&](uint64_t batch, uint64_t row, uint64_t column, bool batches_of_b) {
    int64_t sum = 0;
    for (uint64_t at = 0; at < k; ++at)
      sum += a_at(batch, row, at) * b_at(batches_of_b ? batch : 0, at, column);
    return sum;
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const auto name = [&](const char* what) { return fmt::format("{}_{}", what, dtype_name(dtype)); };
    const auto view = [&](const char* what, const char* part = "") {
      return fmt::format(R"(["{}"{}])", name(what), part);
    };
    const auto typed = [&](uint64_t count, const std::function<int64_t(uint64_t)>& at) {
      return elements(dtype, counted(count, at));
    };
    // The tensors have one more column before and two after, and one more row before.
    cases.input(name("A"), dtype, {2, 3, m, k + 3}, typed(batches * m * (k + 3), [&](uint64_t at) {
                  return a_at(at / (k + 3) / m, at / (k + 3) % m, at % (k + 3) - 1);
                }));
    cases.input(name("B"), dtype, {batches, k + 1, n + 2},
                typed(batches * (k + 1) * (n + 2), [&](uint64_t at) {
                  return b_at(at / (n + 2) / (k + 1), at / (n + 2) % (k + 1) - 1, at % (n + 2));
                }));
    cases.input(name("Bs"), dtype, {2, 3, k, n},
                typed(batches * k * n, [&](uint64_t at) { return b_at(at / n / k, at / n % k, at % n); }));
    cases.input(name("W"), dtype, {n, k + 1},
                typed(n * (k + 1), [&](uint64_t at) { return b_at(0, at % (k + 1), at / (k + 1)); }));
    cases.input(name("bias"), dtype, {n, 2},
                typed(n * 2, [&](uint64_t at) { return bias_at(at / 2) + int64_t(at % 2) * 50; }));
    const char* const a = ",[3,1,7]";
    const std::string first_a = ",[0,0],[1,0],[3,1,7]";
    const auto product = [&](const char* what, const FunctionCases::Shape& shape,
                             const std::function<int64_t(uint64_t, uint64_t, uint64_t)>& at) {
      uint64_t count = 1;
      for (const uint64_t extent : shape) count *= extent;
      cases.output(name(what), dtype, shape,
                   typed(count, [&](uint64_t one) { return at(one / n / m, one / n % m, one % n); }));
    };
    product("product", {m, n}, [&](auto, auto row, auto column) { return dot(0, row, column, false); });
    cases.call("matmul", view("product"),
               view("A", first_a.c_str()) + "," + view("B", ",[0,0],[1,1,7],[2,0,4]"));
    product("batches", {2, 3, m, n},
            [&](auto batch, auto row, auto column) { return dot(batch, row, column, true); });
    cases.call("matmul", view("batches"), view("A", a) + "," + view("Bs"));
    product("one_b", {2, 3, m, n},
            [&](auto batch, auto row, auto column) { return dot(batch, row, column, false); });
    cases.call("matmul", view("one_b"), view("A", a) + "," + view("Bs", ",[0,0],[1,0]"));
    product("linear", {2, 3, m, n},
            [&](auto batch, auto row, auto column) { return dot(batch, row, column, false); });
    cases.call("linear", view("linear"), view("A", a) + "," + view("W", ",[1,0,7]"));
    product("biased", {2, 3, m, n}, [&](auto batch, auto row, auto column) {
      return dot(batch, row, column, false) + bias_at(column);
    });
    cases.call("linear", view("biased"),
               view("A", a) + "," + view("W", ",[1,0,7]") + "," + view("bias", ",[1,0]"));
    // The result goes into a part of a matrix, whose other elements do not change.
    cases.output(name("part"), dtype, {m + 1, n + 3}, typed((m + 1) * (n + 3), [&](uint64_t at) {
                   const uint64_t row = at / (n + 3), column = at % (n + 3);
                   return row < m && column >= 2 && column < n + 2
                              ? dot(0, row, column - 2, false) + bias_at(column - 2)
                              : 9;
                 }));
    cases.call("fill", view("part"), "", R"("value":9)");
    cases.call("linear", view("part", ",[0,0,5],[1,2,4]"),
               view("A", first_a.c_str()) + "," + view("W", ",[1,0,7]") + "," + view("bias", ",[1,0]"));
  }
}

/// Adds products of numbers that must be rounded. A product is exact to 24 bits in f32. In TF32 both factors
/// are exact to 11 bits, cut off or rounded. The sum may be wrong by that fraction of the sum of the
/// products' magnitudes, and in f32 once more in each of the additions.
inline void add_rounded_products(FunctionCases& cases) {
  constexpr uint64_t m = 16, k = 64, n = 24;
  std::mt19937 any(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> a(m * k), b(k * n);
  Bytes a_bytes, b_bytes, w_bytes;
  for (float& one : a) append(a_bytes, one = uniform(any));
  for (float& one : b) append(b_bytes, one = uniform(any));
  for (uint64_t at = 0; at < n * k; ++at) append(w_bytes, b[at % k * n + at / k]);
  cases.input("rounded_A", DType::f32, {m, k}, a_bytes);
  cases.input("rounded_B", DType::f32, {k, n}, b_bytes);
  cases.input("rounded_W", DType::f32, {n, k}, w_bytes);
  std::vector<double> sums, f32_bounds, tf32_bounds;
  for (uint64_t at = 0; at < m * n; ++at) {
    double sum = 0, size = 0;
    for (uint64_t i = 0; i < k; ++i) {
      const double one = double(a[at / n * k + i]) * double(b[i * n + at % n]);
      sum += one;
      size += std::fabs(one);
    }
    sums.push_back(sum);
    f32_bounds.push_back(size * double(k + 1) * 0x1p-24);
    tf32_bounds.push_back(size * 0x1p-9);
  }
  for (const bool tf32 : {false, true}) {
    for (const bool linear : {false, true}) {
      const std::string out =
          fmt::format("{}_{}", linear ? "rounded_linear" : "rounded_matmul", tf32 ? "tf32" : "f32");
      cases.output_near(out, {m, n}, sums, tf32 ? tf32_bounds : f32_bounds);
      cases.call(linear ? "linear" : "matmul", fmt::format(R"(["{}"])", out),
                 fmt::format(R"(["rounded_A"],["{}"])", linear ? "rounded_W" : "rounded_B"),
                 tf32 ? R"("tf32":1)" : "");
    }
  }
}

inline FunctionCases function_cases() {
  FunctionCases cases;
  add_casts(cases);
  add_elementwise(cases);
  add_products(cases);
  add_rounded_products(cases);
  return cases;
}

}  // namespace chorale::test
