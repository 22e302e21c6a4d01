/* The program's parts share these: calls that must succeed, and calls that must fail in a known way.
   C99, and C++ where the same files are tests of the build. */
#ifndef CHECK_H
#define CHECK_H

#include <chorale/chorale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives the timeout of another world's barrier, or of a wait that must end without an abort. */
#define SOON "20s"

/* Expects that the call succeeds. Every function of the API is called in one of these. */
#define OK(call) \
  do { \
    const chorale_status status_ = (call); \
    if (status_ != CHORALE_OK) { \
      fprintf(stderr, "%s:%d: %s is %d (%s): %s\n", __FILE__, __LINE__, #call, (int)status_, \
              chorale_status_name(status_), chorale_last_error()); \
      exit(1); \
    } \
  } while (0)

/* Expects that the call fails with this status and a message with these words. Every function of the API is
 * called in one of these. */
#define FAILS(wanted, words, call) \
  do { \
    const chorale_status status_ = (call); \
    if (status_ != (wanted) || !strstr(chorale_last_error(), words)) { \
      fprintf(stderr, "%s:%d: %s is %d (%s): %s\n  and not %s: ...%s...\n", __FILE__, __LINE__, #call, \
              (int)status_, chorale_status_name(status_), chorale_last_error(), #wanted, words); \
      exit(1); \
    } \
  } while (0)

#define EXPECT(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
      exit(1); \
    } \
  } while (0)

/* Allocates `count` floats. */
static inline chorale_arguments floats(const float* in, float* out, uint64_t count) {
  chorale_arguments call = CHORALE_ARGUMENTS;
  call.in = in;
  call.out = out;
  call.bytes = count * sizeof(float);
  call.dtype = CHORALE_F32;
  return call;
}

/* Run the parts of the program. */
void check_values(void);
void check_config(void);
void check_plans(const char* file);
void check_tuned_plans(void);
void check_threads(void);
void check_messages(void);
void check_processes(void);

#endif
