/* Sends messages between ranks that are threads of this process. */
#include <pthread.h>

#include "check.h"

enum { ranks = 3, most = 70001 };

static chorale_config* config;

static void expect_bytes(const unsigned char* at, uint64_t bytes, int value) {
  for (uint64_t byte = 0; byte < bytes; ++byte) EXPECT(at[byte] == (unsigned char)value);
}

/* Every rank sends to both neighbours, and to itself. */
static void send_around(chorale_exchange* exchange, int rank) {
  static unsigned char mine[ranks][most], left_has[ranks][most], right_has[ranks][most], own[ranks][8];
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  const chorale_send_to sends[] = {
      {mine[rank], most, right, 0}, {mine[rank], 1000, left, 0}, {mine[rank], 8, rank, 0}};
  const chorale_recv_from recvs[] = {
      {left_has[rank], most, left, 0}, {right_has[rank], 1000, right, 0}, {own[rank], 8, rank, 0}};
  memset(mine[rank], rank + 1, most);
  memset(left_has[rank], 0, most);
  memset(right_has[rank], 0, most);
  OK(chorale_exchange_run(exchange, sends, 3, recvs, 3, NULL));
  OK(chorale_exchange_synchronize(exchange, NULL));
  expect_bytes(left_has[rank], most, left + 1);
  expect_bytes(right_has[rank], 1000, right + 1);
  EXPECT(right_has[rank][1000] == 0);
  expect_bytes(own[rank], 8, rank + 1);
  OK(chorale_exchange_run(exchange, NULL, 0, NULL, 0, NULL));
}

/* These calls are wrong on this rank alone, and no other rank is notified. */
static void check_refusals(chorale_exchange* exchange) {
  unsigned char x[16] = {0};
  const chorale_send_to to_nobody = {x, 8, ranks, 0}, strange = {x, 8, 0, 1};
  FAILS(CHORALE_INVALID_ARGUMENT, "rank", chorale_exchange_run(exchange, &to_nobody, 1, NULL, 0, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "'reserved' of a message in 'sends'",
        chorale_exchange_run(exchange, &strange, 1, NULL, 0, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "'recvs' is null", chorale_exchange_run(exchange, NULL, 0, NULL, 1, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "null", chorale_exchange_send(exchange, NULL, 8, 0, NULL));
  FAILS(CHORALE_INVALID_ARGUMENT, "-1", chorale_exchange_recv(exchange, x, 8, -1, NULL));
}

static void* run_rank(void* handle) {
  chorale_world* const world = (chorale_world*)handle;
  const chorale_exchange_options options = {sizeof options, 4096, 2, 0};
  chorale_exchange* exchange = NULL;
  int32_t rank = -1;
  unsigned char x[64];
  OK(chorale_world_rank(world, &rank));
  OK(chorale_exchange_create(world, config, CHORALE_CPU, CHORALE_CURRENT_DEVICE, &options, &exchange));
  send_around(exchange, rank);
  check_refusals(exchange);

  memset(x, rank, sizeof x);
  if (rank == 0) OK(chorale_exchange_send(exchange, x, sizeof x, 2, NULL));
  if (rank == 2) {
    OK(chorale_exchange_recv(exchange, x, sizeof x, 0, NULL));
    expect_bytes(x, sizeof x, 0);
  }
  OK(chorale_exchange_check(exchange));
  OK(chorale_world_barrier(world));

  /* Two ranks name different sizes for one message: all ranks get an error, and continue. */
  if (rank == 0) (void)chorale_exchange_send(exchange, x, 64, 1, NULL);
  if (rank == 1) FAILS(CHORALE_ABORTED, "32", chorale_exchange_recv(exchange, x, 32, 0, NULL));
  FAILS(CHORALE_ABORTED, "64", chorale_world_barrier(world));
  FAILS(CHORALE_ABORTED, "32", chorale_exchange_check(exchange));
  FAILS(CHORALE_ABORTED, "64", chorale_exchange_synchronize(exchange, NULL));
  OK(chorale_world_reset(world));
  OK(chorale_exchange_reset(exchange));
  send_around(exchange, rank);
  OK(chorale_world_barrier(world));
  OK(chorale_world_close(world));
  OK(chorale_exchange_close(exchange));
  FAILS(CHORALE_INVALID_HANDLE, "of an exchange has been closed", chorale_exchange_reset(exchange));
  FAILS(CHORALE_INVALID_HANDLE, "of an exchange has been closed", chorale_exchange_close(exchange));
  return NULL;
}

static void check_creation(void) {
  chorale_world* world = NULL;
  chorale_exchange* exchange = NULL;
  chorale_exchange_options options = {sizeof options, 8, 0, 0};
  OK(chorale_world_local(1, config, &world));
  FAILS(CHORALE_INVALID_ARGUMENT, "8",
        chorale_exchange_create(world, config, CHORALE_CPU, -1, &options, &exchange));
  options.struct_bytes = 4;
  FAILS(CHORALE_INVALID_ARGUMENT, "struct_bytes of 'options' is 4",
        chorale_exchange_create(world, config, CHORALE_CPU, -1, &options, &exchange));
  FAILS(CHORALE_INVALID_ARGUMENT, "device 7 of the backend 'cpu'",
        chorale_exchange_create(world, config, CHORALE_CPU, 7, NULL, &exchange));
  FAILS(CHORALE_INVALID_ARGUMENT, "backend 9",
        chorale_exchange_create(world, config, 9, -1, NULL, &exchange));
  EXPECT(exchange == NULL);
  OK(chorale_world_close(world));
}

void check_messages(void) {
  chorale_world* worlds[ranks];
  pthread_t threads[ranks];
  OK(chorale_config_load(&config));
  OK(chorale_config_set(config, "CHORALE_TIMEOUT", SOON));
  check_creation();
  OK(chorale_world_local(ranks, config, worlds));
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT(pthread_create(&threads[rank], NULL, run_rank, worlds[rank]) == 0);
  for (int rank = 0; rank < ranks; ++rank) pthread_join(threads[rank], NULL);
  OK(chorale_config_close(config));
}
