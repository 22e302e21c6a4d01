// Compares all-reduce on the CPU of one machine, in one run: Chorale's ranks, which are threads of one
// process, against MPI_Allreduce between as many processes. mpirun starts it; see README.md.
//
// The two take turns at every size. During MPI's turn all processes are in MPI_Allreduce. During Chorale's
// turn process 0 runs all its ranks, and the other processes sleep. They check every millisecond whether the
// turn has ended.

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chorale/dsl.hpp>
#include <chorale/executor.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/common/cpu_allreduce.hpp"

namespace {

using namespace chorale::bench;

struct Measured {
  double seconds = 0;  ///< the time of one call on the slowest rank
  size_t wrong = 0;    ///< the number of wrong elements on all ranks
};

Measured run_mpi(size_t elements, double budget) {
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<float> in(elements), out(elements);
  fill(in, rank);
  double one = 0;
  for (int calls = 2;;) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    for (int call = 0; call < calls; ++call) {
      MPI_Allreduce(in.data(), out.data(), int(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    double mine = seconds_since(start) / calls;
    const bool warm = one != 0;
    MPI_Allreduce(&mine, &one, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (warm) break;
    calls = calls_in(budget, one);
  }
  unsigned long wrong = wrong_elements(out, ranks), all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
  return {one, all};
}

Measured run_chorale(const chorale::Plan& plan, int ranks, size_t elements, double budget) {
  std::vector<double> seconds(size_t(ranks), 0);
  std::vector<size_t> wrong(size_t(ranks), 0);
  int calls = 2;
  chorale::run_local(ranks, [&](chorale::World& world) {
    const size_t rank = size_t(world.rank());
    chorale::Executor executor(world);
    std::vector<float> in(elements), out(elements);
    fill(in, int(rank));
    const chorale::Arguments arguments{.in = in.data(), .out = out.data(), .bytes = elements * sizeof(float)};
    executor.prepare(plan, arguments);
    for (int turn = 0; turn < 2;
         ++turn) {  // the first turn warms up, and decides how many calls the second one makes
      world.barrier();
      const auto start = Clock::now();
      for (int call = 0; call < calls; ++call) executor.execute(plan, arguments);
      seconds[rank] = seconds_since(start) / calls;
      world.barrier();
      if (rank == 0 && turn == 0) calls = calls_in(budget, *std::max_element(seconds.begin(), seconds.end()));
    }
    wrong[rank] = wrong_elements(out, ranks);
  });
  Measured measured{*std::max_element(seconds.begin(), seconds.end()), 0};
  for (size_t elements_wrong : wrong) measured.wrong += elements_wrong;
  return measured;
}

/// Names a shipped algorithm, and the largest message for which its scratch pays off.
struct Candidate {
  std::string name;
  size_t most_bytes;
  chorale::Plan plan = {};
};

std::vector<Candidate> candidates(int ranks) {
  std::vector<Candidate> all = {{"allreduce_one_shot", 256 << 10},
                                {"allreduce_two_shot", 4 << 20},
                                {"allreduce_ring", 256 << 20},
                                {"allreduce_all_pairs", 256 << 20}};
  for (Candidate& candidate : all) {
    candidate.plan = chorale::dsl::build(candidate.name, {{"ranks", std::to_string(ranks)}}).compile().plan;
  }
  return all;
}

/// Waits until process 0 has ended its part. Other processes sleep meanwhile.
void wait_for_turn() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) usleep(1000);
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string human(size_t bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t largest = size_t(argc > 1 ? std::max(1, std::atoi(argv[1])) : 64) << 20;
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
  const bool show_all = argc > 3 && std::string(argv[3]) == "all";
  const double budget = 0.15;

  std::vector<Candidate> plans;
  if (rank == 0) {
    plans = candidates(ranks);
    std::printf("all-reduce, f32 sum, %d ranks, median of %d rounds, microseconds\n", ranks, rounds);
    std::printf("%8s  %12s  %12s  %6s  %s\n", "bytes", "MPI", "Chorale", "ratio", "plan");
  }
  size_t wrong = 0;
  bool slower = false;
  for (size_t bytes = 1024; bytes <= largest; bytes *= 4) {
    const size_t elements = bytes / sizeof(float);
    const Candidate* best = nullptr;
    if (rank == 0) {
      double least = 0;
      for (const Candidate& candidate : plans) {
        if (bytes > candidate.most_bytes) continue;
        const Measured measured = run_chorale(candidate.plan, ranks, elements, budget / 3);
        wrong += measured.wrong;
        if (show_all) {
          std::printf("          %-24s %12.1f\n", candidate.name.c_str(), measured.seconds * 1e6);
        }
        if (!best || measured.seconds < least) best = &candidate, least = measured.seconds;
      }
    }
    wait_for_turn();
    std::vector<double> mpi, ours;
    for (int round = 0; round < rounds; ++round) {
      const Measured theirs = run_mpi(elements, budget);
      mpi.push_back(theirs.seconds);
      wrong += theirs.wrong;
      if (rank == 0) {
        const Measured measured = run_chorale(best->plan, ranks, elements, budget);
        ours.push_back(measured.seconds);
        wrong += measured.wrong;
      }
      wait_for_turn();
    }
    if (rank == 0) {
      const double ratio = median(mpi) / median(ours);
      slower |= bytes >= 64 << 10 && ratio < 1;
      std::printf("%8s  %12.1f  %12.1f  %6.2f  %s\n", human(bytes).c_str(), median(mpi) * 1e6,
                  median(ours) * 1e6, ratio, best->name.c_str());
      std::fflush(stdout);
    }
  }
  if (rank == 0 && wrong) std::printf("%zu elements are wrong\n", wrong);
  if (rank == 0 && slower) std::printf("below 1 at 64 KiB or more\n");
  int status = wrong ? 2 : slower ? 1 : 0;
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return status;
}
