// This is the application with MPI of docs/applications.md. The test documented_mpi runs it.
#include "tests/documented/shown/mpi.inc"
