"""The functions of Plan that work on Python's arrays."""
import math
import os
import subprocess
import sys
import webbrowser

from . import _html
from ._errors import FindingsError, UsageError
from ._paths import command_file, machine_file

_NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int32": "i32", "uint32": "u32",
          "int64": "i64", "uint64": "u64", "uint8": "u8", "int8": "i8", "float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2"}


def _numpy():
    """Returns NumPy, which only the functions on arrays need."""
    try:
        import numpy
    except ImportError:
        raise ImportError(f"Plan.run() needs NumPy, which {sys.executable} does not have: install it there, for example by "
                          f"{sys.executable} -m pip install numpy (for Debian's own Python: apt-get install python3-numpy)") from None
    return numpy


def _dtype(array, word):
    if word is not None:
        return word
    name = str(array.dtype)
    if name not in _NAMES:
        raise TypeError(f"arrays have elements of type {name}, which Chorale does not move; it moves {', '.join(_NAMES)}, and "
                        "dtype='bf16' says what the elements are")
    return _NAMES[name]


def run(self, inputs, outputs=None, *, bytes=None, dtype=None, op=None, packet=None, allow=(), seed=None, **settings):
    """Runs the plan once on the CPU, with each rank on a thread, and returns the output of each rank.

    inputs: a NumPy array for each rank, contiguous and all of one size and type.
    outputs: arrays to write to; default: new ones of the same type, with one dimension. One that shares memory with its input
        runs in place.
    bytes: size of the message; default: that of an input, and for all-gather that of an output.
    dtype: the type of elements, such as "bf16" for arrays of uint16; default: the arrays' type.
    op: replaces the plan's operator: "sum", "min", "max", "prod", "avg".
    packet: the form of packets, "ll8", "ll16", "ll128"; default: by the size of the message.
    allow: proofs to leave out, by Finding.kind; "proofs" for all.
    seed: fixes the order in which everything runs.
    Further keywords are settings (docs/settings.md), such as timeout="10s".

    Raises FindingsError if the plan is wrong, UsageError or ValueError for arrays that do not fit, RunError if a rank waits in
    vain.
    """
    numpy = _numpy()
    inputs = list(inputs)
    if len(inputs) != self.ranks:
        raise UsageError(f"there are {len(inputs)} inputs, but plan '{self.name}' has {self.ranks} ranks; pass one array per rank")
    inputs = [numpy.asarray(array) for array in inputs]
    word = _dtype(inputs[0], dtype)
    for rank, array in enumerate(inputs):
        if str(array.dtype) != str(inputs[0].dtype):
            raise UsageError(f"input of rank {rank} has elements of {array.dtype}, and that of rank 0 of {inputs[0].dtype}; "
                             "pass arrays of one type")
        if array.nbytes != inputs[0].nbytes:
            raise UsageError(f"inputs differ: rank {rank} has {array.nbytes} bytes, rank 0 has {inputs[0].nbytes}; "
                             "pass arrays of one size")
    if not _is_right(self, allow):
        raise FindingsError(self.check(allow=list(allow)))
    given = inputs[0].nbytes
    if bytes is None:
        bytes = given * self.ranks if self._counts_output else given
    _, out_bytes = self.message_sizes(bytes, word)
    if outputs is None:
        kind = inputs[0].dtype
        outputs = [numpy.zeros(out_bytes // kind.itemsize, kind) for _ in inputs]
    outputs = list(outputs)
    if len(outputs) != self.ranks:
        raise UsageError(f"there are {len(outputs)} outputs, but plan '{self.name}' has {self.ranks} ranks; pass one array per "
                         "rank")
    self._run(inputs, outputs, bytes, word, op, packet, seed, {key: str(value) for key, value in settings.items()})
    return outputs


def _is_right(plan, allow):
    """Proves a plan once for each object and list of proofs to leave out."""
    if isinstance(allow, str):
        raise TypeError(f"allow takes a list of names, not the text '{allow}'; write allow=['{allow}']")
    known = plan.__dict__.setdefault("_right", set())
    key = tuple(sorted(allow))
    if key not in known:
        if plan.check(allow=list(allow)):
            return False
        known.add(key)
    return True


class Times(list):
    """Simulations of one plan by size of the message, as (bytes, Simulation). A notebook shows them as a table."""

    def __init__(self, plan, rows):
        super().__init__(rows)
        self.plan = plan

    def algbw_gb_s(self, row):
        """Returns the algorithm bandwidth of a row in 10^9 bytes per second."""
        size, simulation = self[row]
        return size / simulation.ns if simulation.ns else math.inf

    def __str__(self):
        lines = [f"{'bytes':>12}  {'us':>10}  {'algbw GB/s':>11}"]
        lines += [f"{size:>12}  {one.us:>10.2f}  {self.algbw_gb_s(row):>11.2f}" for row, (size, one) in enumerate(self)]
        return "\n".join(lines)

    def _repr_html_(self):
        return _html.times(self)


def simulate(self, bytes, *, dtype="f32", packet=None, eager=False, spans=False, machine=None, topology=None):
    """Predicts the time of the plan on a machine that you need not have (docs/simulation.md).

    bytes: size of the message, that of the input, and for all-gather that of the output. A list of sizes gives Times.
    packet: the form of packets, "ll8", "ll16", "ll128"; default: by the size of the message.
    eager: launches one by one; else in a CUDA graph.
    spans: whether Simulation.spans is wanted.
    machine: a machine file, or the name of a shipped one; default: "nvidia_h200".
    topology: how its GPUs are connected (docs/topologies.md): a file, or a shipped name such as "ring:4"; default: as the
        machine's file says.

    Raises UsageError if the plan does not take the message, or if the topology does not connect its ranks; FileNotFoundError if
    there is no such machine.
    """
    file = machine_file(machine)
    topology = "" if topology is None else os.fspath(topology)
    if isinstance(bytes, str):
        raise TypeError(f"bytes takes a number or a list of numbers, not the text '{bytes}'; 1M is 1 << 20")
    if hasattr(bytes, "__iter__"):
        return Times(self, [(size, self._simulate(size, dtype, packet, eager, False, file, topology)) for size in bytes])
    return self._simulate(bytes, dtype, packet, eager, spans, file, topology)


def to_goal(self, bytes, *, dtype="f32", packet=None, machine=None):
    """Returns the messages of a launch as GOAL, for simulators of networks (docs/interchange.md).

    bytes, dtype, packet: the message, as for simulate().
    machine: a machine file, or the name of a shipped one, for the times of work on a GPU; default: they are 0.

    Raises UsageError if the plan does not take the message, FindingsError if the plan is wrong, FileNotFoundError if there is
    no such machine.
    """
    return self._to_goal(bytes, dtype, packet, machine if machine is None else machine_file(machine))


def to_chakra(self, bytes, *, dtype="f32", packet=None, machine=None):
    """Returns the messages of a launch as Chakra's execution traces: a list of bytes, by rank (docs/interchange.md).

    The arguments and errors are those of to_goal(). ASTRA-sim wants the trace of rank R in a file PREFIX.R.et.
    """
    return self._to_chakra(bytes, dtype, packet, machine if machine is None else machine_file(machine))


def view(self, path=None, *, bytes=None, dtype="f32", packet=None, eager=False, machine=None, topology=None, allow=(),
         open=False):
    """Writes a page that shows the plan in a browser, and returns its path (docs/view.md).

    The page is one HTML file that needs no network. It shows when each operation runs and what it waits for, how the chunks
    move, and what is wrong with the plan.

    path: the file to write; default: the name of the plan, with ".html", in the current folder.
    bytes, dtype, packet, eager, machine, topology: the call whose times are predicted, as for simulate(); default: 1 MiB.
    allow: proofs to leave out, by Finding.kind; "proofs" for all.
    open: whether to open the page in a browser.

    Raises UsageError if the plan does not take the message, FileNotFoundError if there is no such machine or no command.
    """
    if isinstance(allow, str):
        raise TypeError(f"allow takes a list of names, not the text '{allow}'; write allow=['{allow}']")
    path = os.path.abspath(os.fspath(path) if path is not None else f"{self.name}.html")
    options = ["--dtype", dtype, "--machine", machine_file(machine)]
    if topology is not None:
        options += ["--topology", os.fspath(topology)]
    if packet is not None:
        options += ["--packet", packet]
    if bytes is not None:
        options += ["--bytes", str(bytes)]
    if eager:
        options.append("--eager")
    for kind in allow:
        options += ["--allow", kind]
    done = subprocess.run([command_file(), "view", "-", "-o", path, *options], input=self.to_json(), encoding="utf-8",
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # 1 says that the plan has findings, which the page shows.
    if done.returncode not in (0, 1) or not os.path.exists(path):
        raise UsageError(done.stderr.strip().removeprefix("error: "))
    if open:
        webbrowser.open("file://" + path)
    return path
