// An application without MPI: four ranks as threads of this process run a plan.
#include <chorale/executor.hpp>
#include <chorale/json.hpp>
#include <cstdio>
#include <mutex>
#include <numeric>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: application PLAN\n"), 2;
  const chorale::Plan plan = chorale::load(argv[1]);
  const int ranks = int(plan.ranks());
  std::vector<int> wrong(ranks);
  chorale::run_local(ranks, [&](chorale::World& world) {
    chorale::Executor executor(world);
    std::vector<float> x(1001, float(world.rank() + 1)), y(x.size());
    executor.execute(plan, {.in = x.data(), .out = y.data(), .bytes = x.size() * sizeof(float)});
    for (float value : y) wrong[world.rank()] += value != float(ranks * (ranks + 1) / 2);
  });
  const int total = std::accumulate(wrong.begin(), wrong.end(), 0);
  std::printf("%d ranks, %d wrong elements\n", ranks, total);
  return total != 0;
}
