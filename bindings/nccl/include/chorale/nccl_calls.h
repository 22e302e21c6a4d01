/* This header declares what Chorale's libnccl.so.2 offers besides NCCL's own interface (docs/nccl.md). It
 * works in C and C++.
 */
#ifndef CHORALE_NCCL_CALLS_H
#define CHORALE_NCCL_CALLS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts the calls of one function of NCCL in this process, by who answered them: this library, nobody (the
 * call was refused), or the fallback that CHORALE_NCCL_FALLBACK names. Calls of a pnccl twin count as calls
 * of the function.
 *
 * function  the name, for example "ncclAllReduce"
 * Returns 0; -1 if the library exports no such function, and then leaves the counts as they are.
 * Any thread may call it at any time. */
int chorale_nccl_calls(const char* function, uint64_t* served, uint64_t* refused, uint64_t* fallback);

#ifdef __cplusplus
}
#endif

#endif
