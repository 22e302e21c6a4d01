#include <chorale/launch_cpu.hpp>

#include "fused_launchers.hpp"

const chorale::torch_fused::Launchers chorale::torch_fused::on_cpu = launchers;
