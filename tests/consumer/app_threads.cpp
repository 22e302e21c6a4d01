// This is an application without MPI. Every rank is a thread of this process and has a GPU. If there are
// fewer GPUs than ranks, all ranks use the CPU.
#include <chorale/json.hpp>
#include <cstdio>
#include <numeric>

#include "memory.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: app_threads PLAN, of an all-reduce\n"), 2;
  const chorale::Plan plan = chorale::load(argv[1]);
  const int ranks = int(plan.ranks());
  chorale::Config config = chorale::Config::load();
  config.backend = gpus() >= ranks ? "cuda" : "cpu";

  std::vector<size_t> wrong(ranks);
  chorale::run_local(
      ranks,
      [&](chorale::World& world) {
        if (config.backend.value == "cuda") use_gpu(world.rank());
        chorale::Executor executor(world, config);
        wrong[world.rank()] = wrong_sums(world, executor, plan);
        world.barrier();  // so that no rank frees what another one still reads
      },
      config.local());
  const size_t total = std::accumulate(wrong.begin(), wrong.end(), size_t(0));
  std::printf("%d threads on %s, %zu wrong elements\n", ranks, config.backend.value.c_str(), total);
  return total != 0;
}
