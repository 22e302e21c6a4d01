/// \file
/// Makes every kind of transport on the CPU, and kernels from lambdas.
#pragma once

#include <cstdint>
#include <memory>

#include "support.hpp"

namespace chorale::test {

/// Names the kinds of transports, and a mesh of two kinds.
enum class Kind {
#define CHORALE_TRANSPORT(name) name,
#include "chorale/transports.def"
  mixed
};
inline constexpr Kind all_kinds[] = {
#define CHORALE_TRANSPORT(name) Kind::name,
#include "chorale/transports.def"
    Kind::mixed};

inline std::shared_ptr<Transport> make(World& world, Kind kind, const RendezvousOptions& options,
                                       int domain = 2) {
  if (kind != Kind::mixed) return rendezvous(world, TransportKind(kind), options);
  return mesh(rendezvous(world, TransportKind::direct, options),
              rendezvous(world, TransportKind::port, options), domain);
}

/// Wraps a lambda as the kernel of any collective.
template <class F>
struct Call {
  F f;
  Stop operator()(const Group& group, const Deadline& deadline) const { return f(group, deadline); }
};
template <class F>
Call(F) -> Call<F>;

template <class T>
Leg leg_of(const void* in, void* out, uint64_t n) {
  Leg leg;
  leg.in = in;
  leg.out = out;
  leg.bytes = n * sizeof(T);
  return leg;
}

}  // namespace chorale::test
