// Compiles the snippets of docs/applications.md for GPUs, without running them.

#include "tests/documented/shown/applications_headers.inc"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else
// Declares what the snippet uses of CUDA, if CUDA is not installed.
using cudaStream_t = struct CUstream_st*;
using cudaGraph_t = struct CUgraph_st*;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
int cudaSetDevice(int);
int cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
int cudaStreamEndCapture(cudaStream_t, cudaGraph_t*);
#endif

#define LEFT_OUT_1

void on_gpus(chorale::World& world, chorale::Config& config, chorale::Plan& plan,
             chorale::Arguments& arguments, int rank, cudaStream_t stream, cudaGraph_t graph) {
#include "tests/documented/shown/on_gpus.inc"
}
