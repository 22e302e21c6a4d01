#pragma once
// Provides layouts for tests.

#include <functional>
#include <vector>

#include "chorale/dsl.hpp"

namespace chorale::test {

using namespace chorale::dsl;

struct Layout {
  const char* name;
  std::function<void(Schedule&)> write;
};

/// Returns a layout for every row of the table of transfers.
inline std::vector<Layout> layouts() {
  constexpr DType f32 = DType::f32;
  return {
      {"allgather",
       [](Schedule& s) {
         const Tensor in = s.input("x", f32, {over_ranks(s.ranks()), 3});
         s.set(s.output("y", f32, {over_streams(s.ranks()), 3}), in);
       }},
      {"allgather of an inner axis",
       [](Schedule& s) {
         const Tensor in = s.input("x", f32, {2, over_ranks(s.ranks()), 3});
         s.set(s.output("y", f32, {2, over_streams(s.ranks()), 3}), in);
       }},
      {"matmul of rows over ranks",
       [](Schedule& s) {
         const Tensor a = s.input("a", f32, {over_ranks(s.ranks()), 2, 4}), b = s.input("b", f32, {4, 3});
         s.matmul(s.output("c", f32, {over_streams(s.ranks()), 2, 3}), a, b);
       }},
      {"column parallel linear, twice of one gather",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor x = s.input("x", f32, {1, over_ranks(d), 2, 4});
         const Tensor w = s.input("w", f32, {over_ranks(d), 1, 3, 4}), bias = s.input("bias", f32, {3});
         const Tensor all = s.temporary("all", f32, {1, over_streams(d), 2, 4});
         const Tensor y = s.output("y", f32, {over_ranks(d), over_streams(d), 2, 3});
         const Tensor z = s.output("z", f32, {over_ranks(d), over_streams(d), 2, 3});
         s.set(all, x);
         s.linear(y, all, w, bias);
         s.add(z, y, y);
       }},
      {"matmul and reduce-scatter",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor a = s.input("a", f32, {over_ranks(d), d, 2, 4}),
                      b = s.input("b", f32, {over_ranks(d), 1, 4, 3});
         const Tensor parts = s.temporary("parts", f32, {over_ranks(d), over_streams(d), 2, 3});
         s.matmul(parts, a, b);
         s.sum(s.output("c", f32, {over_ranks(d), 2, 3}), parts, 0);
       }},
      {"matmul and all-reduce",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor a = s.input("a", f32, {over_ranks(d), d, 2, 4}),
                      b = s.input("b", f32, {over_ranks(d), 1, 4, 3});
         const Tensor parts = s.temporary("parts", f32, {over_ranks(d), over_streams(d), 2, 3});
         s.matmul(parts, a, b);
         s.sum(s.output("c", f32, {over_streams(d), 2, 3}), parts, 0);
       }},
      {"all-to-all",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor in = s.input("x", f32, {over_ranks(d), d, 3});
         s.set(s.output("y", f32, {over_streams(d), over_ranks(d), 3}), in);
       }},
      {"a slice of every rank in each turn",
       [](Schedule& s) {
         const Tensor in = s.input("x", f32, {5, over_ranks(s.ranks()), 3}), b = s.input("b", f32, {3, 2});
         s.matmul(s.output("y", f32, {over_streams(5), s.ranks(), 2}), in, b);
       }},
      {"an all-reduce in each turn",
       [](Schedule& s) {
         const Tensor in = s.input("x", f32, {5, over_ranks(s.ranks()), 3});
         s.sum(s.output("y", f32, {over_streams(5), 3}), in, 1);
       }},
      {"a reduce-scatter in each turn",
       [](Schedule& s) {
         const Tensor in = s.input("x", f32, {5, over_ranks(s.ranks()), s.ranks(), 3});
         s.sum(s.output("y", f32, {over_streams(5), over_ranks(s.ranks()), 3}), in, 1);
       }},
      {"without turns",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor a = s.input("a", f32, {over_ranks(d), 2, 4}), b = s.input("b", f32, {4, 3});
         const Tensor c = s.output("c", f32, {d, 2, 3});
         s.matmul(c, a, b);
         const Tensor parts = s.input("p", f32, {over_ranks(d), 4});
         s.sum(s.output("total", f32, {4}), parts, 0);
         s.set(s.output("mine", f32, {over_ranks(d), 2, 3}), c);
       }},
      {"turns without transfers",
       [](Schedule& s) {
         const Tensor a = s.input("a", f32, {6, 2, 4}), b = s.input("b", f32, {4, 3});
         const Tensor c = s.output("c", f32, {over_streams(6), 2, 3});
         s.matmul(c, a, b);
         s.sum(s.output("rows", f32, {over_streams(6), 3}), c, 1);
       }},
      {"a sum over the slices of the loop before it",
       [](Schedule& s) {
         const Tensor in = s.input("x", f32, {6, 6, 3});
         const Tensor twice = s.temporary("twice", f32, {over_streams(6), 6, 3});
         s.add(twice, in, in);
         s.sum(s.output("y", f32, {over_streams(6), 3}), twice, 0);
       }},
      {"slices of rows and of columns",
       [](Schedule& s) {
         const Tensor a = s.input("a", f32, {over_ranks(s.ranks()), 4}), b = s.input("b", f32, {4, 3});
         s.matmul(s.output("c", f32, {over_streams(s.ranks()), 3}), a, b);
         const Tensor w = s.input("w", f32, {over_ranks(s.ranks()), 4});
         s.linear(s.output("y", f32, {2, over_streams(s.ranks())}), s.input("x", f32, {2, 4}), w);
       }},
      {"two gathers in one loop, and then a sum of all",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor a = s.input("a", f32, {over_ranks(d), 3}), b = s.input("b", f32, {over_ranks(d), 3});
         const Tensor sum = s.temporary("sum", f32, {over_streams(d), 3});
         s.add(sum, a, b);
         s.sum(s.output("y", f32, {3}), sum, 0);
       }},
      {"a slice of one rank and of every rank in each turn",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor a = s.input("a", f32, {over_ranks(d), d, 3}),
                      b = s.input("b", f32, {d, over_ranks(d), 3});
         s.add(s.output("c", f32, {over_streams(d), d, 3}), a, b);
       }},
      {"the same, and then each rank its own",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor a = s.input("a", f32, {over_ranks(d), d, 3}),
                      b = s.input("b", f32, {d, over_ranks(d), 3});
         const Tensor sum = s.temporary("sum", f32, {over_streams(d), d, 3});
         s.add(sum, a, b);
         s.set(s.output("c", f32, {over_ranks(d), d, 3}), sum);
       }},
      {"all-to-all, and then a gather without turns",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor x = s.input("x", f32, {over_ranks(d), d, 3}),
                      b = s.input("b", f32, {over_ranks(d), d, 3});
         const Tensor t = s.temporary("t", f32, {over_streams(d), over_ranks(d), 3});
         s.set(t, x);
         s.add(s.output("c", f32, {d, over_ranks(d), 3}), t, b);
       }},
      {"batches of products",
       [](Schedule& s) {
         const Tensor a = s.input("a", f32, {2, 4, 3}), b = s.input("b", f32, {2, 3, 5});
         s.matmul(s.output("c", f32, {2, 4, 5}), a, b);
       }},
      {"gather, two products and reduce-scatter",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor x = s.input("x", f32, {1, over_ranks(d), 2, 4});
         const Tensor up = s.input("up", f32, {over_ranks(d), 1, 4, 3}),
                      down = s.input("down", f32, {over_ranks(d), 1, 3, 5});
         const Tensor hidden = s.temporary("hidden", f32, {over_ranks(d), over_streams(d), 2, 3});
         const Tensor parts = s.temporary("parts", f32, {over_ranks(d), over_streams(d), 2, 5});
         s.matmul(hidden, x, up);
         s.matmul(parts, hidden, down);
         s.sum(s.output("y", f32, {over_ranks(d), 2, 5}), parts, 0);
       }},
      {"a gather of what has been made in slices of another axis",
       [](Schedule& s) {
         const Index d = s.ranks();
         const Tensor x = s.input("x", f32, {over_ranks(d), 4, 3}), w = s.input("w", f32, {3, 5});
         const Tensor t = s.temporary("t", f32, {over_ranks(d), over_streams(4), 3});
         s.add(t, x, x);
         s.matmul(s.output("o", f32, {over_streams(d), 4, 5}), t, w);
       }},
  };
}

}  // namespace chorale::test
