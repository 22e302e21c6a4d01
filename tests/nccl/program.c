/* A program that uses NCCL's C interface, built against NVIDIA's header or one that programs.py writes from our tables. */
#include <nccl.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(int holds, const char* what) {
  if (holds) return;
  ++failures;
  printf("FAILED: %s, last error: %s\n", what, ncclGetLastError(NULL));
}

int main(void) {
  int version = 0;
  int count = -1;
  float given = 3, sum = 0;
  ncclComm_t comm = NULL;
  ncclUniqueId id;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  memset(&id, 0, sizeof id);
  expect(ncclGetVersion(&version) == ncclSuccess && version == 22809, "ncclGetVersion");
  expect(pncclGetVersion(&version) == ncclSuccess, "pncclGetVersion");
  expect(strcmp(ncclGetErrorString(ncclSuccess), "no error") == 0, "ncclGetErrorString");
  expect(ncclGroupStart() == ncclSuccess && ncclGroupEnd() == ncclSuccess, "an empty group");
  expect(ncclGetUniqueId(&id) == ncclSuccess, "ncclGetUniqueId");
  expect(ncclCommInitRank(&comm, 2, id, 2) == ncclInvalidArgument, "rank 2 of 2");
  expect(ncclCommInitRankConfig(&comm, 1, id, 0, &config) == ncclSuccess, "ncclCommInitRankConfig");
  expect(ncclCommCount(comm, &count) == ncclSuccess && count == 1, "ncclCommCount");
  expect(ncclAllReduce(&given, &sum, 1, ncclFloat32, ncclSum, comm, NULL) == ncclSuccess && sum == given, "ncclAllReduce");
  expect(ncclCommDestroy(comm) == ncclSuccess, "ncclCommDestroy");
  expect(ncclAllReduce(NULL, NULL, 1, ncclFloat32, ncclSum, NULL, NULL) == ncclInvalidArgument, "a null communicator");
  printf("version %d: %s\n", version, ncclGetLastError(NULL));
  return failures > 0;
}
