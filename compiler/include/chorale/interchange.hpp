#pragma once
/// \file
/// The messages of a plan, for simulators of networks. message_graph() makes a graph of one launch: what each
/// rank sends, receives and computes, and what each of these waits for. It is written as GOAL, which
/// LogGOPSim and ATLAHS read, and as Chakra's execution traces, which ASTRA-sim reads. docs/interchange.md
/// says what each operation becomes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/machine.hpp"
#include "chorale/plan.hpp"
#include "chorale/simulate.hpp"

namespace chorale {

/// Holds something that a rank does. Messages are matched by sender, receiver and tag: each tag occurs once
/// between two ranks, so the order of messages does not matter.
struct GraphNode {
  enum class Kind : uint8_t { work, send, receive };
  Kind kind = Kind::work;
  std::string name;     ///< of the operation: "put"
  uint32_t block = 0;   ///< the thread block that does it; receive: that waits for it first
  uint32_t peer = 0;    ///< send, receive: the other rank
  uint32_t tag = 0;     ///< send, receive
  uint64_t bytes = 0;   ///< send, receive: of the message; work: read and written in the rank's own memory
  bool signal = false;  ///< send, receive: the message is a signal or asks for data, and carries none
  uint64_t operations = 0;  ///< work: elements that are combined with others
  uint64_t ns = 0;          ///< work: the estimated time; 0 without a machine
  std::vector<uint32_t>
      after;  ///< nodes of the same rank that end before this one begins, in ascending order

  bool operator==(const GraphNode&) const = default;
};

/// Holds one launch. A node's number is its position.
struct MessageGraph {
  std::string plan;
  std::vector<std::vector<GraphNode>> ranks;

  bool operator==(const MessageGraph&) const = default;
};

/// A message without data has so many bytes: a semaphore.
inline constexpr uint64_t signal_bytes = 8;

/// Returns the messages of one launch.
///
/// \param plan  without findings of check()
/// \param call  uses only bytes, dtype and packet
/// \param machine  estimates the times of work; null: they are 0
/// \throws UsageError as Simulator::simulate()
MessageGraph message_graph(const Plan& plan, const SimulatedCall& call, const Machine* machine = nullptr);

/// Returns a graph as GOAL: one text for all ranks. Thread blocks are `cpu`s.
/// \throws UsageError if a rank has more than 256 thread blocks, which GOAL cannot number
std::string write_goal(const MessageGraph&);
/// Reads GOAL as the tools of LogGOPSim do. Names, operations and the bytes of work are not in the format.
/// \throws UsageError with the line and what is expected there
MessageGraph read_goal(std::string_view text);

/// Returns the execution trace of one rank: a GlobalMetadata and a Node for each node, each one preceded by
/// its length. The file of rank R is named PREFIX.R.et.
std::string write_chakra(const MessageGraph&, uint32_t rank);
/// Reads the traces of all ranks, in order.
/// \throws UsageError with the rank, the position in bytes and what is wrong there
MessageGraph read_chakra(const std::vector<std::string>& traces);

}  // namespace chorale
