#pragma once
// Makes an exchange of boxes between all ranks. The boxes are strided, a group has several transfers, and
// every two ranks have two streams between them.

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "chorale/dsl.hpp"

namespace chorale::test {

struct Exchange {
  DType dtype = DType::i32;
  uint64_t h = 5, w = 6, c = 7;  ///< the extents of X, at least 4, 2 and 3

  uint64_t width() const { return dtype_size(dtype); }
  uint64_t in_bytes(uint64_t ranks) const { return ranks * h * w * c * width(); }
  uint64_t out_bytes(uint64_t ranks) const { return ranks * (h + 1) * (w + 2) * (c + 3) * width(); }
  schedule::Values params() const { return {{"H", int64_t(h)}, {"W", int64_t(w)}, {"C", int64_t(c)}}; }
};

/// Y[r] of every rank gets the inner box of rank r's X[this rank], at another offset, with zeros around it.
/// \param via  the movers of the transfers, in turn by the distance between the ranks
inline Plan exchange(uint32_t ranks, DType dtype, const std::vector<schedule::Mover>& via) {
  using namespace chorale::dsl;
  Schedule schedule({.name = "exchange", .ranks = {ranks}});
  const Index rank = schedule.rank(), all = schedule.ranks();
  const Index h = schedule.param("H", 5), w = schedule.param("W", 6), c = schedule.param("C", 7);
  const Tensor x = schedule.input("X", dtype, {all, h, w, c});
  const Tensor y = schedule.output("Y", dtype, {all, h + 1, w + 2, c + 3});
  const auto from = [&](const Index& to, const Index& first, const Index& rows) {
    return x[to].slice(1, first + 1, rows).slice(2, 1, w - 1).slice(3, 1, c - 2);
  };
  const auto into = [&](const Index& of, const Index& first, const Index& rows) {
    return y[of].slice(1, first + 2, rows).slice(2, 0, w - 1).slice(3, 3, c - 2);
  };
  const dsl::Stream streams[] = {schedule.stream("top"), schedule.stream("rest")};
  schedule.main().call("zero", {y}, {});
  schedule.main().copy(into(rank, 0, h - 2), from(rank, 0, h - 2));
  schedule.main().fork({streams[0], streams[1]});
  for (int rest = 0; rest < 2 && ranks > 1; ++rest) {
    const Index first = rest, rows = rest ? h - 3 : Index(1);
    streams[rest].wait(streams[rest].group([&](dsl::Group& group) {
      for (uint32_t distance = 1; distance < ranks; ++distance) {
        const Index to = (rank + int(distance)) % all, of = (rank - int(distance)) % all;
        group.send(from(to, first, rows), to, {.via = via[distance % via.size()]});
        group.recv(into(of, first, rows), of, {.via = via[distance % via.size()]});
      }
    }));
  }
  schedule.main().join({streams[0], streams[1]});
  Compiled compiled = Program(schedule).compile();
  if (!compiled.diagnostics.empty()) throw std::logic_error(render(compiled.plan, compiled.diagnostics));
  return std::move(compiled.plan);
}

/// Returns a byte of X.
inline uint8_t exchange_byte(int run, uint64_t rank, uint64_t at) {
  return uint8_t(((uint64_t(run) * 1000003 + rank * 8191 + at) * 2654435761u) >> 13);
}

/// Writes `count` bytes of X, from byte `first` on.
inline void write_exchange_bytes(uint8_t* to, uint64_t count, int run, uint64_t rank, uint64_t first) {
  for (uint64_t at = 0; at < count; ++at) to[at] = exchange_byte(run, rank, first + at);
}

inline std::vector<uint8_t> exchange_input(const Exchange& of, int run, uint64_t rank, uint64_t ranks) {
  std::vector<uint8_t> bytes(of.in_bytes(ranks));
  write_exchange_bytes(bytes.data(), bytes.size(), run, rank, 0);
  return bytes;
}

inline std::vector<uint8_t> exchange_output(const Exchange& of, int run, uint64_t rank, uint64_t ranks) {
  std::vector<uint8_t> bytes(of.out_bytes(ranks));
  const uint64_t width = of.width();
  for (uint64_t other = 0; other < ranks; ++other) {
    for (uint64_t i = 0; i < of.h - 2; ++i) {
      for (uint64_t j = 0; j < of.w - 1; ++j) {
        const uint64_t from = (((rank * of.h + i + 1) * of.w + j + 1) * of.c + 1) * width;
        const uint64_t to = (((other * (of.h + 1) + i + 2) * (of.w + 2) + j) * (of.c + 3) + 3) * width;
        write_exchange_bytes(bytes.data() + to, (of.c - 2) * width, run, other, from);
      }
    }
  }
  return bytes;
}

}  // namespace chorale::test
