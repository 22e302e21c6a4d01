/* Runs ranks as processes that connect over TCP. One is killed during an all-reduce, and the others continue. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { ranks = 4, lost = 2, count = 5000 };

/* Returns a port that is free now. */
static int free_port(void) {
  struct sockaddr_in at;
  socklen_t size = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  memset(&at, 0, sizeof at);
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT(bind(listener, (struct sockaddr*)&at, sizeof at) == 0);
  EXPECT(getsockname(listener, (struct sockaddr*)&at, &size) == 0);
  close(listener);
  return ntohs(at.sin_port);
}

/* Runs an all-reduce of rank + 1 over all ranks, out of place and then in place. */
static void add_up(chorale_world* world, chorale_executor* executor, chorale_plan* plan, int all) {
  static float x[count], y[count];
  const float sum = (float)(all * (all + 1) / 2);
  int32_t rank = -1;
  OK(chorale_world_rank(world, &rank));
  for (int at = 0; at < count; ++at) x[at] = (float)(rank + 1);
  chorale_arguments call = floats(x, y, count);
  OK(chorale_executor_execute(executor, plan, &call, NULL));
  for (int at = 0; at < count; ++at) EXPECT(y[at] == sum);
  call = floats(y, y, count);
  OK(chorale_executor_execute(executor, plan, &call, NULL));
  for (int at = 0; at < count; ++at) EXPECT(y[at] == sum * (float)all);
}

static void expect_former(chorale_world* world) {
  int32_t former[ranks];
  uint64_t how_many = 0;
  OK(chorale_world_former_ranks(world, NULL, 0, &how_many));
  EXPECT(how_many == ranks - 1);
  FAILS(CHORALE_INVALID_ARGUMENT, "room for 1 ranks, but there are 3",
        chorale_world_former_ranks(world, former, 1, &how_many));
  OK(chorale_world_former_ranks(world, former, ranks, &how_many));
  for (int rank = 0; rank < ranks - 1; ++rank) EXPECT(former[rank] == rank + (rank >= lost));
}

static void run_rank(const char* address, int rank, chorale_config* config) {
  chorale_world *world = NULL, *left = NULL;
  chorale_plan *plan = NULL, *smaller = NULL;
  chorale_executor *executor = NULL, *next = NULL;
  float x[8] = {0};
  OK(chorale_world_join(address, rank, ranks, config, &world));
  OK(chorale_plan_make("allreduce_all_pairs", ranks, NULL, 0, &plan));
  OK(chorale_plan_prove(plan, NULL));
  OK(chorale_executor_create(world, config, CHORALE_CPU, CHORALE_CURRENT_DEVICE, &executor));
  add_up(world, executor, plan, ranks);
  OK(chorale_world_barrier(world));
  if (rank == lost) raise(SIGKILL);
  chorale_arguments call = floats(x, x, 8);
  FAILS(CHORALE_PEER_LOST, "rank 2", chorale_executor_execute(executor, plan, &call, NULL));
  FAILS(CHORALE_PEER_LOST, "rank 2", chorale_world_reset(world));
  FAILS(CHORALE_INVALID_ARGUMENT, "'survivors' is null", chorale_world_survivors(world, NULL));
  OK(chorale_world_survivors(world, &left));
  OK(chorale_executor_close(executor));
  OK(chorale_world_close(world));
  expect_former(left);
  OK(chorale_plan_make("allreduce_all_pairs", ranks - 1, NULL, 0, &smaller));
  OK(chorale_executor_create(left, config, CHORALE_CPU, CHORALE_CURRENT_DEVICE, &next));
  add_up(left, next, smaller, ranks - 1);
  OK(chorale_world_barrier(left));
  OK(chorale_executor_close(next));
  OK(chorale_world_close(left));
  OK(chorale_plan_close(plan));
  OK(chorale_plan_close(smaller));
}

static void check_join(chorale_config* config) {
  chorale_world* world = NULL;
  chorale_config* hasty = NULL;
  char address[64];
  snprintf(address, sizeof address, "tcp://127.0.0.1:%d", free_port());
  FAILS(CHORALE_INVALID_ARGUMENT, "rank 4 of 4 ranks", chorale_world_join(address, 4, 4, config, &world));
  FAILS(CHORALE_INVALID_ARGUMENT, "'udp://x' is no address",
        chorale_world_join("udp://x", 0, 1, config, &world));
  FAILS(CHORALE_INVALID_ARGUMENT, "'address' is null", chorale_world_join(NULL, 0, 1, config, &world));
  FAILS(CHORALE_INVALID_ARGUMENT, "'world' is null", chorale_world_join(address, 0, 1, config, NULL));
  OK(chorale_config_load(&hasty));
  OK(chorale_config_set(hasty, "CHORALE_TIMEOUT", "300ms"));
  FAILS(CHORALE_TIMED_OUT, "1", chorale_world_join(address, 0, 2, hasty, &world));
  EXPECT(world == NULL);
  EXPECT(strstr(chorale_last_error(), "chorale_config_set()") && !strstr(chorale_last_error(), "JoinOptions"));
  OK(chorale_config_close(hasty));
  FAILS(CHORALE_INVALID_HANDLE, "has been closed", chorale_world_join(address, 0, 1, hasty, &world));
  unsetenv("RANK");
  unsetenv("OMPI_COMM_WORLD_RANK");
  FAILS(CHORALE_INVALID_ARGUMENT, "RANK", chorale_world_from_environment(config, &world));
}

/* Acts as a launcher's only rank. */
static void run_launched(chorale_config* config) {
  chorale_world* world = NULL;
  char port[16];
  int32_t all = 0;
  uint64_t former = 1;
  snprintf(port, sizeof port, "%d", free_port());
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "1", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", port, 1);
  OK(chorale_world_from_environment(config, &world));
  OK(chorale_world_ranks(world, &all));
  OK(chorale_world_former_ranks(world, NULL, 0, &former));
  EXPECT(all == 1 && former == 0);
  OK(chorale_world_close(world));
}

void check_processes(void) {
  char address[64];
  pid_t children[ranks + 2];
  snprintf(address, sizeof address, "tcp://127.0.0.1:%d", free_port());
  for (int child = 0; child < ranks + 2; ++child) {
    children[child] = fork();
    if (children[child] != 0) continue;
    chorale_config* config = NULL;
    OK(chorale_config_load(&config));
    OK(chorale_config_set(config, "CHORALE_TIMEOUT", SOON));
    if (child < ranks) run_rank(address, child, config);
    if (child == ranks) check_join(config);
    if (child == ranks + 1) run_launched(config);
    OK(chorale_config_close(config));
    exit(0);
  }
  for (int child = 0; child < ranks + 2; ++child) {
    int status = 0;
    waitpid(children[child], &status, 0);
    EXPECT(child == lost ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                         : WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}
