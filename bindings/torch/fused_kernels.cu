#include <chorale/launch.cuh>

#include "fused_launchers.hpp"

const chorale::torch_fused::Launchers chorale::torch_fused::on_cuda = launchers;
