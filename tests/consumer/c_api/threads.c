/* Tests worlds whose ranks are threads of this process: executors, the calls that they refuse, and aborts. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { ranks = 3, count = 1001 };

static chorale_plan* plan;
static chorale_tuned_plans* tuned;
static chorale_config* config;

static void fill_ranks(float* x, int rank) {
  for (int at = 0; at < count; ++at) x[at] = (float)(rank + 1 + at % 7);
}

static void expect_sums(const float* y) {
  for (int at = 0; at < count; ++at) EXPECT(y[at] == (float)(ranks * (ranks + 1) / 2 + ranks * (at % 7)));
}

/* Tests unsigned numbers of 64 bits, and types and operators that have no kernel of that name. */
static void run_other_types(chorale_executor* executor, int rank) {
  uint64_t in[6], out[6];
  chorale_arguments call = CHORALE_ARGUMENTS;
  for (int at = 0; at < 6; ++at) in[at] = ((uint64_t)1 << 63) + (uint64_t)(rank * at);
  call.in = in;
  call.out = out;
  call.bytes = sizeof in;
  call.dtype = CHORALE_U64;
  call.op = CHORALE_SUM;
  OK(chorale_executor_execute(executor, plan, &call, NULL));
  for (int at = 0; at < 6; ++at) EXPECT(out[at] == ((uint64_t)1 << 63) + (uint64_t)(3 * at));
  call.op = CHORALE_MAX;
  OK(chorale_executor_execute(executor, plan, &call, NULL));
  for (int at = 0; at < 6; ++at) EXPECT(out[at] == ((uint64_t)1 << 63) + (uint64_t)(2 * at));

  uint8_t flags[6] = {0, 1, 1, 0, 0, 1}, result[6];
  flags[0] = rank == 1;
  flags[1] = rank != 1;
  call.in = flags;
  call.out = result;
  call.bytes = sizeof flags;
  call.dtype = CHORALE_BOOL;
  const chorale_op any[] = {CHORALE_BOR, CHORALE_SUM, CHORALE_MAX};
  const chorale_op all[] = {CHORALE_BAND, CHORALE_PROD, CHORALE_MIN};
  for (int at = 0; at < 3; ++at) {
    call.op = any[at];
    OK(chorale_executor_execute(executor, plan, &call, NULL));
    EXPECT(result[0] == 1 && result[1] == 1 && result[2] == 1 && result[3] == 0);
    call.op = all[at];
    OK(chorale_tuned_plans_execute(tuned, executor, "allreduce", &call, NULL));
    EXPECT(result[0] == 0 && result[1] == 0 && result[2] == 1 && result[3] == 0);
  }

  const struct {
    chorale_dtype dtype;
    chorale_op op;
    const char* says;
  } refused[] = {
      {CHORALE_C64, CHORALE_OP_OF_PLAN, "names no operator; name one of sum and avg"},
      {CHORALE_BOOL, CHORALE_BXOR, "sum bools as i32"},
      {CHORALE_BOOL, CHORALE_AVG, "not by avg"},
      {CHORALE_C64, CHORALE_PROD, "c64 by sum and avg only"},
      {CHORALE_I16, CHORALE_SUM, "convert it to i32"},
      {CHORALE_U16, CHORALE_SUM, "convert it to i32"},
      {CHORALE_I32, CHORALE_BAND, "not by band; gather the words"},
      {CHORALE_I32, CHORALE_BOR, "not by bor; gather the words"},
      {CHORALE_U8, CHORALE_BXOR, "not by bxor; gather the words"},
      {CHORALE_F32, CHORALE_PREMUL_SUM, "multiply the input by the factor"},
      {CHORALE_F32, 10, "op 10 is not one of"},
  };
  call.bytes = 48;
  for (size_t at = 0; at < sizeof refused / sizeof refused[0]; ++at) {
    call.dtype = refused[at].dtype;
    call.op = refused[at].op;
    FAILS(CHORALE_INVALID_ARGUMENT, refused[at].says, chorale_executor_execute(executor, plan, &call, NULL));
    FAILS(CHORALE_INVALID_ARGUMENT, refused[at].says,
          chorale_tuned_plans_execute(tuned, executor, "allreduce", &call, NULL));
  }
  float parts[6] = {(float)rank, 1, (float)rank, 2, (float)rank, 3}, sums[6];
  call.in = parts;
  call.out = sums;
  call.bytes = sizeof parts;
  call.dtype = CHORALE_C64;
  call.op = CHORALE_SUM;
  OK(chorale_executor_execute(executor, plan, &call, NULL));
  EXPECT(sums[0] == 3 && sums[1] == 3 && sums[5] == 9);
  call.bytes = 20;
  FAILS(CHORALE_INVALID_ARGUMENT, "20 bytes are no multiple of 8", chorale_executor_execute(executor, plan, &call, NULL));
}

/* Runs one rank: all-reduces out of place and in place, by a plan and by size. */
static void* run_rank(void* handle) {
  chorale_world* const world = (chorale_world*)handle;
  chorale_executor* executor = NULL;
  int32_t rank = -1, all = -1;
  void* memory = NULL;
  float in[count], out[count] = {0};
  OK(chorale_world_rank(world, &rank));
  OK(chorale_world_ranks(world, &all));
  EXPECT(all == ranks && rank >= 0 && rank < ranks);
  OK(chorale_executor_create(world, config, CHORALE_CPU, CHORALE_CURRENT_DEVICE, &executor));

  fill_ranks(in, rank);
  chorale_arguments call = floats(in, out, count);
  OK(chorale_executor_prepare(executor, plan, &call));
  OK(chorale_executor_execute(executor, plan, &call, NULL));
  OK(chorale_executor_synchronize(executor, NULL));
  expect_sums(out);
  call.out = in;
  call.op = CHORALE_SUM;
  call.packet = CHORALE_LL8;
  OK(chorale_executor_execute(executor, plan, &call, NULL));
  expect_sums(in);

  OK(chorale_executor_allocate(executor, sizeof in, &memory));
  EXPECT(((float*)memory)[count - 1] == 0);
  fill_ranks((float*)memory, rank);
  call = floats((float*)memory, out, count);
  OK(chorale_tuned_plans_execute(tuned, executor, "allreduce", &call, NULL));
  OK(chorale_executor_check(executor));
  expect_sums(out);
  call.op = CHORALE_MAX;
  OK(chorale_tuned_plans_execute(tuned, executor, "allreduce", &call, NULL));
  EXPECT(out[0] == (float)ranks && out[6] == (float)(ranks + 6));
  OK(chorale_world_barrier(world));

  run_other_types(executor, rank);
  OK(chorale_world_barrier(world));

  /* The ranks disagree, so all of them get an error. */
  call.bytes = rank == 0 ? 4 : 8;
  FAILS(CHORALE_MISMATCH, "bytes", chorale_executor_execute(executor, plan, &call, NULL));
  OK(chorale_world_barrier(world));
  /* The executor holds the world, so the two may be closed in any order. */
  OK(chorale_world_close(world));
  OK(chorale_executor_check(executor));
  OK(chorale_executor_close(executor));
  FAILS(CHORALE_INVALID_HANDLE, "of an executor has been closed", chorale_executor_close(executor));
  return NULL;
}

static void check_collectives(void) {
  chorale_world* worlds[ranks];
  pthread_t threads[ranks];
  OK(chorale_world_local(ranks, config, worlds));
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT(pthread_create(&threads[rank], NULL, run_rank, worlds[rank]) == 0);
  for (int rank = 0; rank < ranks; ++rank) pthread_join(threads[rank], NULL);
}

/* Makes calls that an executor refuses, with a world of one rank. */
static void check_refusals(void) {
  chorale_world *world = NULL, *none = NULL;
  chorale_executor *executor = NULL, *missing = NULL;
  chorale_plan* mine = NULL;
  void* memory = NULL;
  float x[8] = {0}, y[8];
  FAILS(CHORALE_INVALID_ARGUMENT, "ranks", chorale_world_local(0, config, &none));
  FAILS(CHORALE_INVALID_ARGUMENT, "'worlds' is null", chorale_world_local(2, config, NULL));
  OK(chorale_world_local(1, NULL, &world));
  FAILS(CHORALE_INVALID_ARGUMENT, "backend -1 is not one",
        chorale_executor_create(world, NULL, -1, -1, &missing));
  FAILS(CHORALE_INVALID_ARGUMENT, "device 0 of the backend 'cpu'",
        chorale_executor_create(world, NULL, CHORALE_CPU, 0, &missing));
  FAILS(CHORALE_INVALID_ARGUMENT, "device -2",
        chorale_executor_create(world, NULL, CHORALE_CPU, -2, &missing));
  const chorale_status no_gpu = chorale_executor_create(world, NULL, CHORALE_CUDA, 4096, &missing);
  EXPECT(no_gpu == CHORALE_INVALID_ARGUMENT || no_gpu == CHORALE_FAILED);
  EXPECT(missing == NULL && strlen(chorale_last_error()) > strlen("chorale_executor_create: "));
  OK(chorale_executor_create(world, NULL, CHORALE_BACKEND_OF_CONFIG, CHORALE_CURRENT_DEVICE, &executor));

  chorale_arguments call = floats(x, y, 8);
  FAILS(CHORALE_INVALID_ARGUMENT, "is for 3 ranks, but the world has 1",
        chorale_executor_execute(executor, plan, &call, NULL));
  OK(chorale_plan_make("allreduce_all_pairs", 1, NULL, 0, &mine));
  OK(chorale_executor_execute(executor, mine, &call, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "'arguments' is null",
        chorale_executor_execute(executor, mine, NULL, NULL));
  call.out = NULL;
  FAILS(CHORALE_INVALID_ARGUMENT, "null", chorale_executor_prepare(executor, mine, &call));
  call = floats(x, y, 8);
  call.bytes = 7;
  FAILS(CHORALE_INVALID_ARGUMENT, "7 bytes are no multiple", chorale_executor_prepare(executor, mine, &call));
  call = floats(x, y, 8);
  call.dtype = 0;
  FAILS(CHORALE_INVALID_ARGUMENT, "dtype 0 is not one of",
        chorale_executor_execute(executor, mine, &call, NULL));
  call = floats(x, y, 8);
  call.op = 10;
  FAILS(CHORALE_INVALID_ARGUMENT, "op 10 is not one of", chorale_executor_execute(executor, mine, &call, NULL));
  call = floats(x, y, 8);
  call.packet = -1;
  FAILS(CHORALE_INVALID_ARGUMENT, "packet -1 is not one of",
        chorale_executor_execute(executor, mine, &call, NULL));
  call = floats(x, y, 8);
  call.struct_bytes = 0;
  FAILS(CHORALE_INVALID_ARGUMENT, "struct_bytes of 'arguments' is 0",
        chorale_executor_execute(executor, mine, &call, NULL));
  /* A newer header's arguments have more fields, which may be 0. */
  struct {
    chorale_arguments known;
    uint64_t added;
  } newer = {floats(x, y, 8), 0};
  newer.known.struct_bytes = sizeof newer;
  OK(chorale_executor_execute(executor, mine, &newer.known, NULL));
  newer.added = 1;
  FAILS(CHORALE_INVALID_ARGUMENT, "members that this library does not know",
        chorale_executor_execute(executor, mine, &newer.known, NULL));
  call = floats(x, y, 8);
  FAILS(CHORALE_INVALID_ARGUMENT, "reduce_all",
        chorale_tuned_plans_execute(tuned, executor, "reduce_all", &call, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "'collective' is null",
        chorale_tuned_plans_execute(tuned, executor, NULL, &call, NULL));
  FAILS(CHORALE_RESOURCES, "18446744073709551615 bytes",
        chorale_executor_allocate(executor, UINT64_MAX, &memory));
  FAILS(CHORALE_INVALID_HANDLE, "of an executor is null", chorale_executor_check(NULL));
  FAILS(CHORALE_INVALID_HANDLE, "of an executor is null", chorale_executor_synchronize(NULL, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "'rank' is null", chorale_world_rank(world, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "'ranks' is null", chorale_world_ranks(world, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "'why' is null", chorale_world_abort(world, NULL));
  OK(chorale_plan_close(mine));
  OK(chorale_executor_close(executor));
  OK(chorale_world_close(world));
  FAILS(CHORALE_INVALID_HANDLE, "of a world has been closed", chorale_world_close(world));
  FAILS(CHORALE_INVALID_HANDLE, "of a world has been closed", chorale_world_barrier(world));
}

static chorale_status waited;
static char waited_words[1000];

static void* wait_for_others(void* handle) {
  waited = chorale_world_barrier((chorale_world*)handle);
  if (waited != CHORALE_OK) snprintf(waited_words, sizeof waited_words, "%s", chorale_last_error());
  return NULL;
}

static void* reset_other(void* handle) {
  OK(chorale_world_reset((chorale_world*)handle));
  return NULL;
}

/* While a thread waits in a world, other calls are refused, and an abort ends the wait. */
static void check_abort(void) {
  chorale_world* worlds[2];
  pthread_t waiter;
  chorale_status seen = CHORALE_OK;
  OK(chorale_world_local(2, config, worlds));
  OK(chorale_world_check(worlds[0]));
  EXPECT(pthread_create(&waiter, NULL, wait_for_others, worlds[0]) == 0);
  for (int look = 0; look < 20000 && seen == CHORALE_OK; ++look) {
    seen = chorale_world_check(worlds[0]);
    usleep(1000);
  }
  EXPECT(seen == CHORALE_IN_USE);
  FAILS(CHORALE_IN_USE, "takes one call at a time", chorale_world_reset(worlds[0]));
  OK(chorale_world_abort(worlds[1], "it is enough"));
  pthread_join(waiter, NULL);
  EXPECT(waited == CHORALE_ABORTED && strstr(waited_words, "it is enough") && strstr(waited_words, "rank 1"));
  EXPECT(strstr(chorale_last_error(),
                "takes one call at a time")); /* the other thread's error is not this thread's */
  FAILS(CHORALE_ABORTED, "it is enough", chorale_world_check(worlds[0]));
  EXPECT(pthread_create(&waiter, NULL, reset_other, worlds[1]) == 0);
  OK(chorale_world_reset(worlds[0]));
  pthread_join(waiter, NULL);
  OK(chorale_world_check(worlds[1]));
  OK(chorale_world_close(worlds[0]));
  OK(chorale_world_close(worlds[1]));
}

void check_threads(void) {
  OK(chorale_config_load(&config));
  OK(chorale_config_set(config, "CHORALE_TIMEOUT", SOON));
  OK(chorale_plan_make("allreduce_all_pairs", ranks, NULL, 0, &plan));
  OK(chorale_tuned_plans_open(NULL, NULL, ranks, CHORALE_CPU, NULL, 0, &tuned));
  check_collectives();
  check_refusals();
  check_abort();
  OK(chorale_tuned_plans_close(tuned));
  OK(chorale_plan_close(plan));
  OK(chorale_config_close(config));
}
