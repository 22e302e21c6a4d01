/// \file
/// Makes every kind of transport on the CPU, and kernels from lambdas.
#pragma once

#include <cstdint>
#include <memory>

#include "support.hpp"

namespace chorale::test {

enum class Kind { direct, port, mixed };
inline constexpr Kind all_kinds[] = {Kind::direct, Kind::port, Kind::mixed};

inline std::shared_ptr<Transport> make(World& world, Kind kind, const RendezvousOptions& options,
                                       int domain = 2) {
  switch (kind) {
    case Kind::direct:
      return direct_rendezvous(world, options);
    case Kind::port:
      return port_rendezvous(world, options, ProxyKind::shared_memory);
    case Kind::mixed:
      break;
  }
  return mesh(direct_rendezvous(world, options), port_rendezvous(world, options, ProxyKind::shared_memory),
              domain);
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
