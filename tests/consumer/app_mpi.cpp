// This is an application with MPI. Every process is a rank and has a GPU. If there are fewer GPUs than ranks,
// all ranks use the CPU.
//
//   mpirun -n 2 app_mpi allreduce_ring_2.json
#include <chorale/json.hpp>
#include <chorale/mpi.hpp>
#include <cstdio>

#include "memory.hpp"

namespace {

int run(const char* path) {
  const chorale::Plan plan = chorale::load(path);
  chorale::Config config = chorale::Config::load();
  chorale::World world = chorale::world_from_mpi(MPI_COMM_WORLD, config.join());
  config.backend = gpus() >= world.ranks() ? "cuda" : "cpu";
  if (config.backend.value == "cuda") use_gpu(world.rank());
  chorale::Executor executor(world, config);
  unsigned long wrong = wrong_sums(world, executor, plan), total = 0;
  MPI_Allreduce(&wrong, &total, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (world.rank() == 0) {
    std::printf("%d processes on %s, %lu wrong elements\n", world.ranks(), config.backend.value.c_str(),
                total);
  }
  return total != 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int result = 2;
  if (argc != 2) {
    std::fprintf(stderr, "usage: app_mpi PLAN, of an all-reduce over all processes\n");
  } else {
    try {
      result = run(argv[1]);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "error: %s\n", error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);  // the others may wait for this rank
    }
  }
  MPI_Finalize();
  return result;
}
