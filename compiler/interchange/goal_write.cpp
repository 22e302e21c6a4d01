// The grammar of GOAL is that of LogGOPSim's txt2bin (src/LogGOPSim/txt2bin.re of github.com/spcl/LogGOPSim).
// A line defines an operation or names one that another one requires. Sizes are in bytes, times in
// nanoseconds.

#include <string>

#include "chorale/interchange.hpp"
#include "chorale/usage_error.hpp"

namespace chorale {
namespace {

using Kind = GraphNode::Kind;

constexpr uint32_t most_cpus = 256;  // a cpu is a byte in LogGOPSim

void write_node(std::string& text, const GraphNode& node, uint32_t rank, size_t number) {
  if (node.block >= most_cpus) {
    throw UsageError("rank " + std::to_string(rank) + " has more than " + std::to_string(most_cpus) +
                     " thread blocks, and GOAL numbers " + std::to_string(most_cpus) + " cpus");
  }
  const std::string label = "l" + std::to_string(number + 1);
  text += label + ": ";
  if (node.kind == Kind::work) {
    text += "calc " + std::to_string(node.ns);
  } else {
    const bool sends = node.kind == Kind::send;
    text += (sends ? "send " : "recv ") + std::to_string(node.bytes) + (sends ? "b to " : "b from ") +
            std::to_string(node.peer) + " tag " + std::to_string(node.tag);
  }
  text += " cpu " + std::to_string(node.block) + "\n";
  for (const uint32_t before : node.after) text += label + " requires l" + std::to_string(before + 1) + "\n";
}

}  // namespace

std::string write_goal(const MessageGraph& graph) {
  std::string text = "num_ranks " + std::to_string(graph.ranks.size()) + "\n";
  for (uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    text += "\nrank " + std::to_string(rank) + " {\n";
    for (size_t number = 0; number < graph.ranks[rank].size(); ++number)
      write_node(text, graph.ranks[rank][number], rank, number);
    text += "}\n";
  }
  return text;
}

}  // namespace chorale
