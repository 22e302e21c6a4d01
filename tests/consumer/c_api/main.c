/* Calls every function of Chorale's C API, with success and with errors: api PLAN, a file of an all-reduce.
 */
#include "check.h"

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: api PLAN\n"), 2;
  check_values();
  check_config();
  check_processes(); /* forks, so it comes before there are threads */
  check_plans(argv[1]);
  check_tuned_plans();
  check_threads();
  check_messages();
  printf("the C API %s, ABI %d\n", chorale_version(), (int)chorale_abi());
  return 0;
}
