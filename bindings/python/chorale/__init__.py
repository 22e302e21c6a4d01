"""Chorale: GPU collectives that are checked before they run.

    import chorale
    plan = chorale.Plan.make("allreduce_ring", 4)
    outputs = plan.run([numpy.ones(1024, numpy.float32)] * 4)

`chorale.language` writes algorithms, with the names of MSCCL++'s `mscclpp.language`. `Plan` checks, proves, shows, simulates
and runs them. `World`, `Executor`, `Exchange` and `TunedPlans` run them in an application.
"""
import os as _os

from . import _chorale

_chorale._set_package_folder(_os.path.join(_os.path.dirname(_os.path.abspath(__file__)), ""))

from . import _html, _plan  # noqa: E402
from ._chorale import (Allocation, Choice, Exchange, Executor, Finding, LinkUse, Plan, Simulation, TraceSpan,  # noqa: E402
                       TunedPlans, World, run_local)
from ._errors import Findings, FindingsError, PlanError, RunError, UsageError  # noqa: E402
from ._paths import plans_folder  # noqa: E402
from ._plan import Times  # noqa: E402

__version__ = _chorale.version
__all__ = [
    "Allocation", "Choice", "Exchange", "Executor", "Finding", "Findings", "FindingsError", "LinkUse", "Plan", "PlanError", "RunError",
    "Simulation", "Times", "TraceSpan", "TunedPlans", "UsageError", "World", "plans_folder", "run_local",
]

for _class, _name, _function in ((Plan, "run", _plan.run), (Plan, "simulate", _plan.simulate), (Plan, "view", _plan.view),
                                 (Plan, "to_goal", _plan.to_goal), (Plan, "to_chakra", _plan.to_chakra),
                                 (Plan, "_repr_html_", _html.plan),
                                 (Finding, "_repr_html_", _html.finding)):
    setattr(_class, _name, _function)
