/* This header declares what Chorale's libnccl.so.2 offers besides NCCL's own interface (docs/nccl.md). It
 * works in C and C++.
 */
#ifndef CHORALE_NCCL_CALLS_H
#define CHORALE_NCCL_CALLS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gets how often this process has called one function of NCCL. Calls of its pnccl twin count too.
 *
 * function  the name of the function, for example "ncclAllReduce"
 * served    set to the number of calls that this library has executed; not null
 * refused   set to the number of calls that returned an error because they are not supported; not null
 * fallback  set to the number of calls that the library of CHORALE_NCCL_FALLBACK has executed; not null
 *
 * Returns 0. Returns -1 if the library exports no such function, and then does not set the counts.
 * Any thread may call it at any time. */
int chorale_nccl_calls(const char* function, uint64_t* served, uint64_t* refused, uint64_t* fallback);

#ifdef __cplusplus
}
#endif

#endif
