#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

/// A stream as CUDA's headers name it, so that the table of functions reads as NVIDIA's header does.
using cudaStream_t = struct CUstream_st*;

/// The types of NCCL's C interface, under their names there, without NVIDIA's header. They are in a namespace
/// so that a test can include both and compare them.
namespace chorale::nccl {

// NVIDIA's header defines these as macros. Programs see the macros, and only our own code sees these.
enum : int {
#define CHORALE_NCCL_CONSTANT(name, value) NCCL_##name = value,
#include "abi.def"
};

// These have a fixed type, because a program may pass a value that has no enumerator, such as one of a later
// NCCL.
enum ncclResult_t : int {
#define CHORALE_NCCL_RESULT(name, value) name = value,
#include "abi.def"
};

enum ncclRedOp_t : int {
#define CHORALE_NCCL_OPERATOR(name, value) name = value,
#include "abi.def"
};

enum ncclDataType_t : int {
#define CHORALE_NCCL_TYPE(name, value) name = value,
#include "abi.def"
};

enum ncclScalarResidence_t : int {
#define CHORALE_NCCL_RESIDENCE(name, value) name = value,
#include "abi.def"
};

/// NCCL 2.30 added this enumeration: which memory ncclCommMemStats() is asked about.
enum ncclCommMemStat_t : int {};

using ncclComm_t = struct ncclComm*;
using ncclWindow_t = struct ncclWindow_vidmem*;

struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};

/// Describes the communicator that a program wants. Members that are NCCL_CONFIG_UNDEF_INT or null leave the
/// choice to the library.
struct ncclConfig_t {
#define CHORALE_NCCL_CONFIG(type, name, initial) type name;
#include "abi.def"
};

/// Receives the result of ncclGroupSimulateEnd().
struct ncclSimInfo_t {
#define CHORALE_NCCL_SIMULATION(type, name, initial) type name;
#include "abi.def"
};

/// NVIDIA's NCCL_CONFIG_INITIALIZER.
inline constexpr ncclConfig_t config_initializer = {
#define CHORALE_NCCL_CONFIG(type, name, initial) .name = initial,
#include "abi.def"
};

/// NVIDIA's NCCL_SIM_INFO_INITIALIZER.
inline constexpr ncclSimInfo_t simulation_initializer = {
#define CHORALE_NCCL_SIMULATION(type, name, initial) .name = initial,
#include "abi.def"
};

// The functions for nccl_device.h and those after 2.28 also use these types. A function that this library
// refuses needs only the size of what it passes by value.
struct ncclTeam_t {
  int nRanks, rank, stride;
};
struct ncclWaitSignalDesc_t {
  int opCnt, peer, sigIdx, ctx;
};
struct ncclDevComm_t;
struct ncclDevCommRequirements_t;
struct ncclDevResourceRequirements_t;
struct ncclGinBarrierHandle_t;
struct ncclLLA2AHandle_t;
struct ncclLsaBarrierHandle_t;
using ncclParamHandle_t = struct ncclParamHandle*;

}  // namespace chorale::nccl
