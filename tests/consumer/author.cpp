// This is an author's tool. It builds a program with the DSL, compiles it and writes the plan.
#include <chorale/dsl.hpp>
#include <chorale/json.hpp>
#include <cstdio>

using namespace chorale::dsl;

int main() {
  Program program({.name = "pair_exchange", .collective = AllGather{.ranks = 2, .chunk_factor = 1}});
  for (int rank = 0; rank < 2; ++rank) {
    const int peer = 1 - rank;
    Rank me(program, rank);
    me.copy(me.get_output_buffer()[rank], me.get_input_buffer()[0], 0);
    MemoryChannel channel(program, peer, rank);
    channel.signal(0, SyncType::none, true);
    channel.wait(0, SyncType::after, true);
    channel.put(Rank(program, peer).get_output_buffer()[rank], me.get_input_buffer()[0], 0);
    channel.signal(0, SyncType::before);
    channel.wait(0, SyncType::after);
  }
  const Compiled compiled = program.compile();
  std::fputs(chorale::render(compiled.plan, compiled.diagnostics).c_str(), stderr);
  std::fputs(chorale::write(compiled.plan).c_str(), stdout);
  return compiled.diagnostics.empty() ? 0 : 1;
}
