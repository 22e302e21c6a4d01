// This file compiles if NVIDIA's headers and our tables describe the same interface. header.py compiles it
// where they are installed. Ours comes first, because the macros of NVIDIA's header have the names of our
// constants.
#include "bindings/nccl/abi.hpp"
//
#include <nccl.h>
#include <nccl_device.h>

#include <cstddef>
#include <type_traits>

namespace ours = chorale::nccl;

#define CHORALE_NCCL_CONSTANT(name, value) static_assert(NCCL_##name == (value));
#define CHORALE_NCCL_ENUMERATOR(name, value) \
  static_assert(int(::name) == (value) && int(ours::name) == (value));
#define CHORALE_NCCL_RESULT CHORALE_NCCL_ENUMERATOR
#define CHORALE_NCCL_OPERATOR CHORALE_NCCL_ENUMERATOR
#define CHORALE_NCCL_TYPE CHORALE_NCCL_ENUMERATOR
#define CHORALE_NCCL_RESIDENCE CHORALE_NCCL_ENUMERATOR
#include "bindings/nccl/abi.def"

#define CHORALE_NCCL_MEMBER(structure, name) \
  static_assert(offsetof(::structure, name) == offsetof(ours::structure, name)); \
  static_assert(std::is_same_v<decltype(::structure::name), decltype(ours::structure::name)>);
#define CHORALE_NCCL_CONFIG(type, name, initial) CHORALE_NCCL_MEMBER(ncclConfig_t, name)
#define CHORALE_NCCL_SIMULATION(type, name, initial) CHORALE_NCCL_MEMBER(ncclSimInfo_t, name)
#include "bindings/nccl/abi.def"

constexpr ::ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
constexpr ::ncclSimInfo_t simulation = NCCL_SIM_INFO_INITIALIZER;
#define CHORALE_NCCL_CONFIG(type, name, initial) static_assert(config.name == ours::config_initializer.name);
#define CHORALE_NCCL_SIMULATION(type, name, initial) \
  static_assert(simulation.name == ours::simulation_initializer.name);
#include "bindings/nccl/abi.def"

// Equal sizes mean that no member is missing at the end.
template <class Theirs, class Ours>
constexpr bool same_size = sizeof(Theirs) == sizeof(Ours) && alignof(Theirs) == alignof(Ours);
static_assert(same_size<::ncclConfig_t, ours::ncclConfig_t>);
static_assert(same_size<::ncclSimInfo_t, ours::ncclSimInfo_t>);
static_assert(same_size<::ncclUniqueId, ours::ncclUniqueId>);
static_assert(same_size<::ncclResult_t, ours::ncclResult_t>);
static_assert(same_size<::ncclRedOp_t, ours::ncclRedOp_t>);
static_assert(same_size<::ncclDataType_t, ours::ncclDataType_t>);
static_assert(same_size<::ncclScalarResidence_t, ours::ncclScalarResidence_t>);
static_assert(same_size<::ncclComm_t, ours::ncclComm_t>);
static_assert(same_size<::ncclWindow_t, ours::ncclWindow_t>);
static_assert(same_size<::ncclTeam_t, ours::ncclTeam_t>);
static_assert(std::is_same_v<decltype(::ncclUniqueId::internal), decltype(ours::ncclUniqueId::internal)>);
static_assert(std::is_same_v<decltype(::ncclTeam_t::stride), decltype(ours::ncclTeam_t::stride)>);
static_assert(offsetof(::ncclTeam_t, stride) == offsetof(ours::ncclTeam_t, stride));

// A row names NVIDIA's types here, so it is compared with NVIDIA's declaration. Some names are overloaded in
// C++, and then the declaration with these parameters has to be one of them.
#define CHORALE_NCCL_COMPARE_nccl(result, name, parameters) \
  static_assert(std::is_same_v<decltype(::name), result parameters>); \
  static_assert(std::is_same_v<decltype(::p##name), result parameters>);
#define CHORALE_NCCL_COMPARE_device(result, name, parameters) \
  static_assert(static_cast<result(*) parameters>(::name) != nullptr);
#define CHORALE_NCCL_COMPARE_later(result, name, parameters)
#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check, ...) \
  CHORALE_NCCL_COMPARE_##header(result, name, parameters)
#include "bindings/nccl/functions.def"
